//! Functions and answers of the Berkeley Function-Calling Leaderboard on their way to a provider and back.

use std::sync::Arc;

use adjutant::Model;
use adjutant::llm::{
    Call, CallResult, Entry, Format, Options, Reply, Request, Schema, Script, ScriptedModel,
    Structured, ToolDecl,
};
use adjutant_testing::{Loopback, Received};
use serde::Deserialize;
use serde_json::Value;

use crate::{Wire, answered, listen};

/// Functions, and published answers of calls to them.
#[derive(Debug, Clone, Deserialize)]
pub struct FunctionCase {
    /// The name of the case.
    pub name: String,
    /// The functions.
    pub tools: Vec<ToolDecl>,
    /// The answers.
    pub answers: Vec<Answer>,
}

/// The arguments of a call.
#[derive(Debug, Clone, Deserialize)]
pub struct Answer {
    /// The position of the called function.
    pub tool: usize,
    /// The arguments.
    pub arguments: Value,
    /// True if they fit the function's schema, as another validator finds.
    pub fits: bool,
}

impl FunctionCase {
    /// Sends the functions over a wire, lets the provider call them with the answers in the names that it was shown, and
    /// sends the calls back. Returns the bodies of both requests.
    ///
    /// # Errors
    /// The first difference between an answer and what arrived, or what the provider was sent back.
    pub async fn travel(&self, wire: Wire) -> Result<Vec<Received>, String> {
        let calls = self.clone();
        let scripts = [
            Script::from_fn(move |shown| calls.script(shown)),
            Script::new().text("Done."),
        ];
        let provider = Arc::new(ScriptedModel::new(scripts));
        let server = serve(Arc::clone(&provider)).await?;
        let model = wire.model(&server);
        let request = Request::new().user("Call them.").tools(self.tools.clone());
        let reply = ask(&*model, request.clone()).await?;
        self.compare("the calls", &calls_of(&reply), &self.tools)?;
        if !self.answers.is_empty() {
            let again = answered(request, &reply, |_| CallResult::ok("Done."));
            ask(&*model, again).await?;
            let shown = provider.requests().pop().ok_or("no request arrived")?;
            let turns = shown
                .entries
                .iter()
                .filter_map(|stored| match &stored.entry {
                    Entry::Turn(turn) => Some(calls_of(turn.reply())),
                    _ => None,
                });
            let sent: Vec<_> = turns.flatten().collect();
            self.compare("the calls that went back", &sent, &shown.tools)?;
        }
        Ok(server.requests())
    }

    /// Asks for an answer that fits the schema of a function. Returns the request.
    ///
    /// # Errors
    /// The error of the wire.
    pub async fn format(&self, wire: Wire, tool: &ToolDecl) -> Result<Vec<Received>, String> {
        let server = serve(ScriptedModel::new([Script::new().text("{}")])).await?;
        let options = Options {
            format: Some(Format::new("answer", Arc::clone(&tool.schema))),
            ..Options::default()
        };
        let mut info = wire.info();
        info.structured = Structured::Native;
        let model = wire.model_of(info, &wire.base_url(&server), Default::default());
        ask(&*model, Request::new().user("Answer.").options(options)).await?;
        Ok(server.requests())
    }

    /// Returns the answers whose local validation differs from the other validator's.
    pub fn disputed(&self) -> Vec<String> {
        let judged = self.answers.iter().filter_map(|answer| {
            let tool = self.tools.get(answer.tool)?;
            let schema = Schema::compile(Arc::clone(&tool.schema)).ok()?;
            let fits = schema.validate(&answer.arguments).is_ok();
            (fits != answer.fits).then(|| format!("{}: {}: {fits}", self.name, tool.name))
        });
        judged.collect()
    }

    /// The calls of the provider: names and keys are those that it was shown.
    fn script(&self, shown: &Request) -> Script {
        let calls = self.calls(&shown.tools).into_iter();
        calls.fold(Script::new(), |script, (name, arguments)| {
            script.call_raw(name, arguments)
        })
    }

    /// The answers as calls of these tools, which list the functions in the same order.
    fn calls(&self, tools: &[ToolDecl]) -> Vec<(String, String)> {
        let calls = self.answers.iter().map(|answer| {
            let (ours, theirs) = (&self.tools[answer.tool], &tools[answer.tool]);
            let arguments = renamed(&answer.arguments, &ours.schema, &theirs.schema);
            (theirs.name.as_str().to_owned(), arguments.to_string())
        });
        calls.collect()
    }

    /// Compares calls with the answers as calls of these tools.
    fn compare(
        &self,
        what: &str,
        calls: &[(String, String)],
        tools: &[ToolDecl],
    ) -> Result<(), String> {
        let expected = self.calls(tools);
        if calls == expected {
            return Ok(());
        }
        let differs = expected.iter().zip(calls).find(|(one, other)| one != other);
        Err(format!("{what}: {differs:?}"))
    }
}

async fn serve(provider: impl Model + 'static) -> Result<Loopback, String> {
    let server = Loopback::start(provider).await;
    server.map_err(|error| error.to_string())
}

async fn ask(model: &dyn Model, request: Request) -> Result<Arc<Reply>, String> {
    let heard = listen(model, request).await;
    heard.end.map_err(|error| error.to_string())
}

fn calls_of(reply: &Reply) -> Vec<(String, String)> {
    let pair = |call: &Call| (call.name.as_str().to_owned(), call.args.to_string());
    reply.calls().map(pair).collect()
}

/// Arguments with the keys of another schema that has the same members in the same order.
fn renamed(arguments: &Value, ours: &Value, theirs: &Value) -> Value {
    match arguments {
        Value::Object(members) => {
            let pairs = [ours, theirs].map(|schema| schema["properties"].as_object());
            let rename = |(key, value): (&String, &Value)| {
                let [Some(ours), Some(theirs)] = pairs else {
                    return (key.clone(), value.clone());
                };
                let found = ours.iter().zip(theirs).find(|((name, _), _)| *name == key);
                match found {
                    Some(((_, ours), (name, theirs))) => {
                        (name.clone(), renamed(value, ours, theirs))
                    }
                    None => (key.clone(), value.clone()),
                }
            };
            members.iter().map(rename).collect()
        }
        Value::Array(items) => items
            .iter()
            .map(|item| renamed(item, &ours["items"], &theirs["items"]))
            .collect(),
        _ => arguments.clone(),
    }
}
