//! Where credentials of AWS are looked for, in the order of AWS's own libraries.

use reqsign_aws_v4::{
    AssumeRoleWithWebIdentityCredentialProvider, Credential, ECSCredentialProvider, EnvCredentialProvider,
    IMDSv2CredentialProvider, ProcessCredentialProvider, ProfileCredentialProvider, SSOCredentialProvider,
};
use reqsign_core::{Context, ProvideCredential, ProvideCredentialDyn};

use super::{Config, SESSION_NAME};

/// A place.
#[derive(Debug)]
pub(super) struct Place {
    /// As in messages.
    pub(super) name: String,
    /// What is said of it when nothing is there.
    pub(super) absent: &'static str,
    pub(super) provider: Box<dyn ProvideCredentialDyn<Credential = Credential>>,
    pub(super) context: Context,
    /// Nothing says that it is there: that it does not answer is no failure of what was configured.
    pub(super) is_guess: bool,
}

/// Variables that say something in pairs, in the order of their places.
const PAIRS: [[&str; 2]; 2] =
    [["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"], ["AWS_ROLE_ARN", "AWS_WEB_IDENTITY_TOKEN_FILE"]];

/// The first pair of which anything is set, if half of it is missing: the search would go on to another identity.
pub(super) fn half(config: &Config, context: &Context) -> Option<[&'static str; 2]> {
    if config.profile.is_some() {
        return None;
    }
    let set = |pair: &[&str; 2]| pair.map(|name| context.env_var(name).is_some_and(|value| !value.is_empty()));
    PAIRS.into_iter().find(|pair| set(pair) != [false, false]).filter(|pair| set(pair) != [true, true])
}

/// The places of a configuration. Those of a profile alone, where one is named; none behind that of AWS_PROFILE.
pub(super) fn all(config: &Config, context: &Context, near: &Context) -> Vec<Place> {
    let of_profile = of_profile(config, context);
    if config.profile.is_some() {
        return of_profile;
    }
    let variables = "the variables AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY";
    let identity = "the web identity of AWS_ROLE_ARN and AWS_WEB_IDENTITY_TOKEN_FILE (IRSA)";
    let endpoint = "the endpoint AWS_CONTAINER_CREDENTIALS_FULL_URI or AWS_CONTAINER_CREDENTIALS_RELATIVE_URI (EKS Pod \
                    Identity, ECS)";
    let instance = "the instance's metadata (IMDSv2)";
    let mut places = vec![
        place(variables, "not set", EnvCredentialProvider::new(), context),
        place(identity, "not set", web_identity(config, context), context),
    ];
    places.extend(of_profile);
    if context.env_var("AWS_PROFILE").is_some() {
        return places;
    }
    places.push(place(endpoint, "not set", ECSCredentialProvider::new(), context));
    let instance = place(instance, "switched off by AWS_EC2_METADATA_DISABLED", IMDSv2CredentialProvider::new(), near);
    places.push(Place { is_guess: true, ..instance });
    places
}

fn of_profile(config: &Config, context: &Context) -> Vec<Place> {
    let chosen = config.profile.clone().or_else(|| context.env_var("AWS_PROFILE"));
    let profile = chosen.unwrap_or_else(|| "default".to_owned());
    let keys = format!("keys of the profile {profile:?} in ~/.aws/credentials or ~/.aws/config");
    let (login, process) = (format!("its login by SSO ({profile:?})"), format!("its credential_process ({profile:?})"));
    // A role that a profile names is not assumed: `role_arn` is a key of the section.
    vec![
        place(keys, "none", ProfileCredentialProvider::new().with_profile(&profile), context),
        place(login, "none", SSOCredentialProvider::new().with_profile(&profile), context),
        place(process, "none", ProcessCredentialProvider::new().with_profile(&profile), context),
    ]
}

/// The token of a service account, which STS changes into credentials: at the region's own endpoint.
fn web_identity(config: &Config, context: &Context) -> AssumeRoleWithWebIdentityCredentialProvider {
    AssumeRoleWithWebIdentityCredentialProvider::new()
        .with_region(config.region.clone())
        .with_regional_sts_endpoint()
        .with_role_session_name(session_name(config, context))
}

/// What the sessions of roles are called.
pub(super) fn session_name(config: &Config, context: &Context) -> String {
    let name = config.session_name.clone().or_else(|| context.env_var("AWS_ROLE_SESSION_NAME"));
    name.unwrap_or_else(|| SESSION_NAME.to_owned())
}

fn place(
    name: impl Into<String>,
    absent: &'static str,
    provider: impl ProvideCredential<Credential = Credential>,
    context: &Context,
) -> Place {
    Place { name: name.into(), absent, provider: Box::new(provider), context: context.clone(), is_guess: false }
}
