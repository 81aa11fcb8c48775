//! The reason why a request is not answered, before a wire gives it its form.

use adjutant_llm::{Error, ErrorKind};

/// The reason why a request is not answered.
#[derive(Debug, Clone)]
pub struct Refusal {
    pub(crate) status: u16,
    pub(crate) message: String,
    /// The place in the body.
    pub(crate) param: Option<String>,
    pub(crate) code: Option<String>,
    pub(crate) headers: Vec<(String, String)>,
    /// True if the input is too long; each vendor has its own words for it.
    pub(crate) overflow: bool,
}

impl Refusal {
    /// A refusal with this status.
    pub fn new(status: u16, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
            param: None,
            code: None,
            headers: Vec::new(),
            overflow: false,
        }
    }

    /// The request is wrong.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(400, message)
    }

    /// Sets the invalid field of the body.
    #[must_use]
    pub fn param(mut self, param: impl Into<String>) -> Self {
        self.param = Some(param.into());
        self
    }

    /// Sets the vendor's code.
    #[must_use]
    pub fn code(mut self, code: impl Into<String>) -> Self {
        self.code = Some(code.into());
        self
    }

    /// Creates the refusal that a vendor sends with this status without a specific reason.
    pub(crate) fn from_status(status: u16) -> Self {
        let message = match status {
            401 => "invalid x-api-key",
            403 => "Your API key does not have permission to use the specified resource.",
            404 => "The model does not exist or you do not have access to it.",
            413 => "Request exceeds the maximum size",
            429 => {
                "This request would exceed your organization's rate limit. Please try again later."
            }
            503 | 529 => "Overloaded",
            500.. => "Internal server error",
            _ => "The request was not accepted.",
        };
        Self::new(status, message)
    }

    /// The HTTP status.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The message, or the vendor's text for input that is too long.
    pub fn message_or<'a>(&'a self, overflow: &'a str) -> &'a str {
        if self.overflow {
            overflow
        } else {
            &self.message
        }
    }

    /// Turns the served model's own failure into the refusal that is seen from outside.
    pub(crate) fn from_error(error: &Error) -> Self {
        let status = error.details().status.unwrap_or(match error.kind() {
            ErrorKind::Auth => 401,
            ErrorKind::Config => 404,
            ErrorKind::Invalid | ErrorKind::Overflow | ErrorKind::Refused => 400,
            ErrorKind::RateLimited => 429,
            ErrorKind::Overloaded => 529,
            ErrorKind::Timeout => 504,
            _ => 500,
        });
        let mut refusal = Self::new(status, error.message());
        refusal.code = error.details().code.as_deref().map(str::to_owned);
        refusal.overflow = error.kind() == ErrorKind::Overflow;
        if let Some(wait) = error.retry_after() {
            let header = match wait.subsec_millis() {
                0 => ("retry-after", wait.as_secs().to_string()),
                _ => ("retry-after-ms", wait.as_millis().to_string()),
            };
            refusal.headers.push((header.0.to_owned(), header.1));
        }
        refusal
    }
}
