{{/* The configuration, refused where no pod could run with it. The program itself refuses the rest: `check`. */}}
{{- define "outbox-relay.config" -}}
{{- $config := required "config is missing: --set-file config=outbox-relay.toml" .Values.config }}
{{- $keys := include "outbox-relay.keys" . }}
{{- if not (regexMatch `listen\s*=\s*["'](0\.0\.0\.0|\[::\]):9464["']` $keys) }}
{{- fail "config: [admin] listen must be \"0.0.0.0:9464\": probes and Prometheus come from outside of the pod" }}
{{- end }}
{{- range regexFindAll `(?m)^\s*(shutdown\.)?grace\s*=\s*"[0-9]+(s|m)"` $keys -1 }}
{{- $unit := ternary 60 1 (hasSuffix "m\"" .) }}
{{- $grace := regexFind `[0-9]+` . | int | mul $unit }}
{{- if lt (int $.Values.terminationGracePeriodSeconds) (add $grace 20 | int) }}
{{- fail (printf "terminationGracePeriodSeconds is %d: with [shutdown] grace of %d s it must be %d or more" (int $.Values.terminationGracePeriodSeconds) $grace (add $grace 20)) }}
{{- end }}
{{- end }}
{{- $config }}
{{- end }}

{{/* The configuration without its lines of comments. */}}
{{- define "outbox-relay.keys" -}}
{{- regexReplaceAll `(?m)^\s*#.*$` .Values.config "" }}
{{- end }}
