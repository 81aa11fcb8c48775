//! All agents of a supervisor, asked from one place.

use std::{sync::Arc, time::Duration};

use adjutant_runtime::{
    ErrorKind, Goal, Home, Status, Supervisor,
    control::{ControlClient, ControlFile, ControlPlane},
    http::Client,
    prompt::{Control, MessagesRequest, PausesRequest, PromptRequest},
    supervisor::Settings,
};
use adjutant_tool::Cancel;
use futures_util::StreamExt;

use super::desk::{both, created};

#[tokio::test]
async fn all_agents_are_listed_watched_and_asked_from_one_place() {
    for (_folder, path, backend) in both() {
        let home = Home::at(&path);
        let (ada, bob) = (
            created(&*backend, "ada").await,
            created(&*backend, "bob").await,
        );
        let operator = home.operate().expect("nobody else works on it");
        let supervisor = Supervisor::new(Arc::clone(&backend), operator, Settings::new());
        let plane = ControlPlane::bind(&home, supervisor.table())
            .await
            .expect("it listens");
        let file = ControlFile::read(&home).expect("it tells where");
        assert_eq!(
            (file.address, &*file.token),
            (plane.address(), plane.token())
        );
        let client = ControlClient::new(file.address, &*file.token).expect("a client");
        let (end, closed) = (Cancel::new(), Cancel::new());
        let work = tokio::spawn(supervisor.run(end.clone(), Cancel::new()));
        let stop = closed.clone();
        let serving = tokio::spawn(plane.serve(async move { stop.cancelled().await }));

        let mut news = client.watch().await.expect("it is told");
        home.desire(ada.id(), Goal::Running).expect("it is written");
        let mut until = async |name: &str, status: Status| {
            let seen = async {
                loop {
                    let row = news.next().await.expect("it goes on").expect("a row");
                    if *row.agent == *name && row.status == status {
                        return;
                    }
                }
            };
            tokio::time::timeout(Duration::from_secs(30), seen)
                .await
                .expect("it comes");
        };
        until("ada", Status::Ready).await;
        let rows = client.agents().await.expect("they are listed");
        let told: Vec<(&str, &Status)> =
            rows.iter().map(|row| (&*row.agent, &row.status)).collect();
        assert_eq!(told, [("ada", &Status::Ready), ("bob", &Status::Created)]);

        let one = client.agent("ada").expect("a name");
        assert_eq!(
            one.prompt(PromptRequest::new("Is it so?"))
                .await
                .expect("it answers")
                .text,
            "Yes."
        );
        let by_id = client.agent(&ada.id().to_string()).expect("an id");
        assert_eq!(
            by_id
                .messages(MessagesRequest::new())
                .await
                .expect("a page")
                .messages
                .len(),
            2
        );
        assert_eq!(
            by_id
                .pauses(PausesRequest::new())
                .await
                .expect("a page")
                .pauses,
            []
        );
        let events: Vec<_> = one
            .attach(None, Some(0))
            .await
            .expect("it is there")
            .collect()
            .await;
        assert!(events.len() > 3 && events.iter().all(Result::is_ok));

        // Wrong tokens, names and states.
        let kind = |error: Option<adjutant_runtime::Error>| error.map(|error| error.kind());
        let stopped = client
            .agent("bob")
            .expect("a name")
            .prompt(PromptRequest::new("Hi."))
            .await;
        assert_eq!(kind(stopped.err()), Some(ErrorKind::Conflict));
        let nobody = client
            .agent("nobody")
            .expect("a name")
            .control(None, Control::Stop {})
            .await;
        assert_eq!(kind(nobody.err()), Some(ErrorKind::Missing));
        for name in ["", "..", "a/b", "a b"] {
            assert_eq!(
                kind(client.agent(name).err()),
                Some(ErrorKind::Invalid),
                "{name:?}"
            );
        }
        let stranger = ControlClient::new(file.address, "wrong").expect("a client");
        assert_eq!(kind(stranger.agents().await.err()), Some(ErrorKind::Denied));
        assert_eq!(kind(stranger.watch().await.err()), Some(ErrorKind::Denied));
        let agent = stranger.agent("ada").expect("a name");
        assert_eq!(
            kind(agent.sessions(Default::default()).await.err()),
            Some(ErrorKind::Denied)
        );
        if let Some(address) = ada.address() {
            // The token of all is not that of one.
            let direct = Client::new(address, &*file.token).expect("a client");
            assert_eq!(kind(direct.status().await.err()), Some(ErrorKind::Denied));
        }

        home.desire(bob.id(), Goal::Removed).expect("it is written");
        until("bob", Status::Removed).await;
        assert_eq!(client.agents().await.expect("they are listed").len(), 1);
        end.cancel();
        work.await.expect("it does not panic").expect("it works");
        closed.cancel();
        serving.await.expect("it ends");
        assert_eq!(
            kind(client.agents().await.err()),
            Some(ErrorKind::Connection)
        );
    }
}
