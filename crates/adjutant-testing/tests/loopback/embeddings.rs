//! Vectors on both wires that have them, and what is refused.

use adjutant_llm::ScriptedModel;
use adjutant_testing::Loopback;
use serde_json::{Value, json};

use crate::client::{Answer, Client, run};

async fn ask(path: &str, key: &str, body: &Value) -> Answer {
    let server = Loopback::start(ScriptedModel::new([]))
        .await
        .expect("a port");
    let mut client = Client::open(&server).await;
    let body = body.to_string();
    let head = format!("POST {path} HTTP/1.1\r\n{key}\r\ncontent-type: application/json");
    client
        .send(&format!(
            "{head}\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        ))
        .await;
    client.answer().await
}

async fn openai(body: Value) -> Answer {
    ask("/v1/embeddings", "authorization: Bearer k", &body).await
}

async fn gemini(requests: Value) -> Answer {
    ask(
        "/v1beta/models/e:batchEmbedContents",
        "x-goog-api-key: k",
        &json!({"requests": requests}),
    )
    .await
}

fn request(text: &str) -> Value {
    json!({"model": "models/e", "content": {"parts": [{"text": text}]}, "outputDimensionality": 3})
}

fn vectors(answer: &Value, list: &str, field: &str) -> Vec<Vec<f32>> {
    let numbers = |value: &Value| {
        value
            .as_array()
            .expect("numbers")
            .iter()
            .map(|it| it.as_f64().expect("a number") as f32)
            .collect()
    };
    answer[list]
        .as_array()
        .expect("vectors")
        .iter()
        .map(|it| numbers(&it[field]))
        .collect()
}

#[test]
fn embeddings_are_the_same_when_the_text_is() {
    run(async {
        let answer = openai(json!({"model": "e", "input": ["a", "b", "a"], "dimensions": 3}))
            .await
            .json();
        let floats = vectors(&answer, "data", "embedding");
        assert_eq!(floats.len(), 3);
        assert_eq!(floats[0], floats[2]);
        assert_ne!(floats[0], floats[1]);
        let length: f32 = floats[0].iter().map(|it| it * it).sum();
        assert!((length - 1.0).abs() < 1e-5, "{floats:?}");
        assert_eq!(
            answer["usage"],
            json!({"prompt_tokens": 3, "total_tokens": 3})
        );
        let answer = gemini(json!([request("a"), request("b")])).await.json();
        assert_eq!(vectors(&answer, "embeddings", "values"), floats[..2]);
    });
}

#[test]
fn embeddings_are_little_endian_bytes_when_base64_is_asked_for() {
    run(async {
        let floats = openai(json!({"model": "e", "input": "a", "dimensions": 1}))
            .await
            .json();
        let body =
            json!({"model": "e", "input": "a", "dimensions": 1, "encoding_format": "base64"});
        let packed = openai(body).await.json()["data"][0]["embedding"].clone();
        // One number of length 1.
        let expect = if floats["data"][0]["embedding"][0] == 1.0 {
            "AACAPw=="
        } else {
            "AACAvw=="
        };
        assert_eq!(packed, expect);
    });
}

#[test]
fn embeddings_are_refused_when_there_are_too_many_or_none() {
    run(async {
        let many: Vec<String> = (0..2_049).map(|at| at.to_string()).collect();
        for (input, told) in [
            (
                json!(many),
                "input: array too long. Expected an array with maximum length 2048",
            ),
            (json!([]), "input: Invalid 'input'"),
            (json!(["a", ""]), "input.1: input cannot be an empty string"),
        ] {
            let answer = openai(json!({"model": "e", "input": input})).await;
            assert_eq!(answer.status, 400);
            let message = answer.json()["error"]["message"]
                .as_str()
                .expect("a message")
                .to_owned();
            assert!(message.starts_with(told), "{message}");
        }
        let answer = gemini(json!(vec![request("a"); 101])).await;
        assert_eq!(
            (answer.status, &answer.json()["error"]["status"]),
            (400, &json!("INVALID_ARGUMENT"))
        );
        assert_eq!(gemini(json!(vec![request("a"); 100])).await.status, 200);
    });
}
