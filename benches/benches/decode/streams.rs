//! Answers of the four wires as bytes, with all that the providers really put into an event.

use adjutant_providers::fuzzing::Wire;
use bytes::Bytes;

/// What a model says, word by word; some words hold what JSON escapes.
const WORDS: [&str; 16] = [
    " the",
    " quick",
    " brown",
    " fox",
    ",",
    " jump",
    "ed",
    " over",
    " a",
    " lazy",
    " dog",
    ".\\n\\n",
    " Then",
    " \\\"hm\\\"",
    " déjà",
    " vu",
];

/// An answer of about this many bytes, made of many small deltas.
pub(crate) fn small_deltas(wire: Wire, bytes: usize) -> Bytes {
    let mut out = String::with_capacity(bytes + 4_096);
    out.push_str(begin(wire));
    let mut n = 0;
    while out.len() < bytes {
        delta(wire, n, WORDS[n % WORDS.len()], &mut out);
        n += 1;
    }
    out.push_str(end(wire));
    out.into()
}

/// An answer whose text comes in one event of this many bytes.
pub(crate) fn one_event(wire: Wire, bytes: usize) -> Bytes {
    let mut text = String::with_capacity(bytes);
    while text.len() < bytes {
        text.push_str(
            "It was the best of times, it was the worst of times, it was the age of wisdom. ",
        );
    }
    let mut out = String::from(begin(wire));
    delta(wire, 0, &text, &mut out);
    out.push_str(end(wire));
    out.into()
}

/// Source: streaming pages of the four providers' references, 2026-11.
fn begin(wire: Wire) -> &'static str {
    match wire {
        Wire::Messages => concat!(
            "event: message_start\n",
            r#"data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","#,
            r#""content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":25,"output_tokens":1}}}"#,
            "\n\nevent: content_block_start\n",
            r#"data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
            "\n\n",
        ),
        Wire::Responses => concat!(
            "event: response.created\n",
            r#"data: {"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","#,
            r#""status":"in_progress","output":[],"usage":null}}"#,
            "\n\nevent: response.output_item.added\n",
            r#"data: {"type":"response.output_item.added","sequence_number":1,"output_index":0,"#,
            r#""item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}}"#,
            "\n\n",
        ),
        _ => "",
    }
}

fn delta(wire: Wire, n: usize, text: &str, out: &mut String) {
    let parts: [&str; 3] = match wire {
        Wire::Messages => [
            "event: content_block_delta\n\
             data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"",
            "\"}}\n\n",
            "",
        ],
        Wire::Responses => [
            "event: response.output_text.delta\n\
             data: {\"type\":\"response.output_text.delta\",\"sequence_number\":1234,\"item_id\":\"msg_1\",\
             \"output_index\":0,\"content_index\":0,\"delta\":\"",
            "\",\"logprobs\":[],\"obfuscation\":\"Kq3vT0xYz1\"}\n\n",
            "",
        ],
        Wire::Chat => [
            "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1760000000,\
             \"model\":\"m-2026-08-01\",\"service_tier\":\"default\",\"system_fingerprint\":\"fp_1234567890\",\
             \"choices\":[{\"index\":0,\"delta\":{\"content\":\"",
            "\"},\"logprobs\":null,\"finish_reason\":null}],\"usage\":null}\n\n",
            "",
        ],
        _ => [
            "data: {\"candidates\": [{\"content\": {\"parts\": [{\"text\": \"",
            "\"}],\"role\": \"model\"},\"index\": 0}],\"usageMetadata\": {\"promptTokenCount\": 25,\
             \"candidatesTokenCount\": ",
            ",\"totalTokenCount\": 1025,\"promptTokensDetails\": [{\"modality\": \"TEXT\",\"tokenCount\": 25}]},\
             \"modelVersion\": \"m-2026-08\",\"responseId\": \"r1\"}\r\n\r\n",
        ],
    };
    out.push_str(parts[0]);
    out.push_str(text);
    out.push_str(parts[1]);
    if !parts[2].is_empty() {
        out.push_str(&n.to_string());
        out.push_str(parts[2]);
    }
}

fn end(wire: Wire) -> &'static str {
    match wire {
        Wire::Messages => concat!(
            "event: content_block_stop\n",
            r#"data: {"type":"content_block_stop","index":0}"#,
            "\n\nevent: message_delta\n",
            r#"data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"#,
            r#""usage":{"output_tokens":15}}"#,
            "\n\nevent: message_stop\n",
            r#"data: {"type":"message_stop"}"#,
            "\n\n",
        ),
        Wire::Responses => concat!(
            "event: response.completed\n",
            r#"data: {"type":"response.completed","sequence_number":9,"response":{"id":"resp_1","object":"response","#,
            r#""status":"completed","output":[],"usage":{"input_tokens":25,"output_tokens":15,"total_tokens":40}}}"#,
            "\n\n",
        ),
        Wire::Chat => concat!(
            r#"data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1760000000,"model":"m","#,
            r#""choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":null}"#,
            "\n\n",
            r#"data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1760000000,"model":"m","#,
            r#""choices":[],"usage":{"prompt_tokens":25,"completion_tokens":15,"total_tokens":40}}"#,
            "\n\ndata: [DONE]\n\n",
        ),
        _ => concat!(
            r#"data: {"candidates": [{"content": {"parts": [{"text": ""}],"role": "model"},"finishReason": "STOP","#,
            r#""index": 0}],"usageMetadata": {"promptTokenCount": 25,"candidatesTokenCount": 15,"#,
            r#""totalTokenCount": 40},"responseId": "r1"}"#,
            "\r\n\r\n",
        ),
    }
}
