//! Implements the prompt API for an engine.

use futures_util::future::BoxFuture;
use serde_json::Value;

use super::Engine;
use crate::{
    error::Error,
    prompt::{
        Control, EventStream, ForkRequest, Look, MessagePage, MessagesRequest, ObjectRequest,
        PausePage, PausesRequest, PromptReply, PromptRequest, Prompter, ResumeRequest, SessionInfo,
        SessionPage, SessionsRequest, UndoRequest, Undone,
    },
};

/// Writes the methods as `async_trait` does, without a future of their own: otherwise the compiler checks `Send` of the
/// whole engine again for each future.
macro_rules! passed_on {
    ($($name:ident<$($life:lifetime)?>($($argument:ident: $type:ty),*) -> $output:ty;)*) => {$(
        fn $name<'engine, $($life,)? 'future>(
            &'engine self,
            $($argument: $type),*
        ) -> BoxFuture<'future, Result<$output, Error>>
        where
            'engine: 'future,
            $($life: 'future,)?
            Self: 'future,
        {
            self.prompter.$name($($argument),*)
        }
    )*};
}

impl Prompter for Engine {
    passed_on! {
        prompt<>(request: PromptRequest) -> PromptReply;
        stream<>(request: PromptRequest) -> EventStream;
        resume<>(request: ResumeRequest) -> EventStream;
        pauses<>(request: PausesRequest) -> PausePage;
        object<>(request: ObjectRequest) -> Value;
        messages<>(request: MessagesRequest) -> MessagePage;
        sessions<>(request: SessionsRequest) -> SessionPage;
        control<'session>(session: Option<&'session str>, control: Control) -> ();
        attach<'session>(session: Option<&'session str>, after: Option<u64>) -> EventStream;
        fork<'session>(session: Option<&'session str>, request: ForkRequest) -> SessionInfo;
        delete<'session>(session: &'session str) -> ();
        look<'session>(session: Option<&'session str>, look: Look) -> Value;
        undo<'session>(session: Option<&'session str>, request: UndoRequest) -> Undone;
    }
}
