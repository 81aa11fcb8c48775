//! A middleware made of a function.

use std::{fmt, pin::Pin, sync::Arc};

use adjutant_core::{Failure, RunResult};
use async_trait::async_trait;

use super::{DriveContext, Middleware, NextDrive};

/// The future that a function which is a middleware returns; it may borrow the rest of the chain.
pub type BoxDrive<'a> = Pin<Box<dyn Future<Output = Result<RunResult, Failure>> + Send + 'a>>;

/// A middleware made of a function; see [`middleware_fn`].
pub struct FnMiddleware<F> {
    name: Arc<str>,
    wrap: F,
}

/// Makes a middleware of a name and a function.
///
/// # Example
/// ```
/// use adjutant_agent::{Agent, middleware_fn};
/// # use adjutant_llm::{Script, ScriptedModel};
///
/// # let model = ScriptedModel::new([Script::new().text("Hi.")]);
/// let timed = middleware_fn("timed", |cx, next| {
///     Box::pin(async move {
///         let result = next.run(cx).await?;
///         println!("{:?}", result.duration);
///         Ok(result)
///     })
/// });
/// let agent = Agent::new(model).middleware(timed);
/// ```
pub fn middleware_fn<F>(name: impl Into<Arc<str>>, wrap: F) -> FnMiddleware<F>
where
    F: for<'a> Fn(DriveContext, NextDrive<'a>) -> BoxDrive<'a> + Send + Sync,
{
    FnMiddleware {
        name: name.into(),
        wrap,
    }
}

#[async_trait]
impl<F> Middleware for FnMiddleware<F>
where
    F: for<'a> Fn(DriveContext, NextDrive<'a>) -> BoxDrive<'a> + Send + Sync,
{
    fn name(&self) -> &str {
        &self.name
    }

    async fn drive(&self, cx: DriveContext, next: NextDrive<'_>) -> Result<RunResult, Failure> {
        (self.wrap)(cx, next).await
    }
}

impl<F> fmt::Debug for FnMiddleware<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FnMiddleware")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
