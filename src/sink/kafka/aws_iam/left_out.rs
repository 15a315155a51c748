//! What stands in for the signer in a program that was built without it. The configuration refuses `[kafka.aws_iam]` there.

use async_trait::async_trait;

use super::Config;
use crate::sink::http::oauth2::{Token, TokenSource};
use crate::sink::{Class, Failure};

#[derive(Debug)]
pub(super) struct Source;

impl Source {
    pub(super) fn new(_: Config) -> Self {
        Self
    }
}

#[async_trait]
impl TokenSource for Source {
    fn name(&self) -> &str {
        super::SESSION_NAME
    }

    async fn ask(&self) -> Result<Token, Failure> {
        Err(self.unavailable("this program was built without it"))
    }

    fn unavailable(&self, message: &str) -> Failure {
        let hint = "Use a program that was built with the cargo feature iam";
        Failure::of(Class::Retry, "token_unavailable", message, hint)
    }
}
