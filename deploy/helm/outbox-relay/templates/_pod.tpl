{{/* What all pods of the chart share. */}}
{{- define "outbox-relay.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "outbox-relay.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- define "outbox-relay.env" -}}
- name: OUTBOX_RELAY_CONFIG
  value: /etc/outbox-relay/outbox-relay.toml
{{- end }}

{{- define "outbox-relay.extraEnv" -}}
{{- with .Values.logLevel }}
- name: RUST_LOG
  value: {{ . | quote }}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "outbox-relay.mounts" -}}
- name: config
  mountPath: /etc/outbox-relay
  readOnly: true
- name: secrets
  mountPath: /run/secrets/outbox-relay
  readOnly: true
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "outbox-relay.volumes" -}}
- name: secrets
  secret:
    secretName: {{ .Values.secrets.name }}
    defaultMode: 0440
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}
