//! Tests of what stands before the messages: thinking, calls, formats and tools.

use super::*;

/// Checks what a request says beside its name, limit, tools and messages, and its warnings.
#[track_caller]
fn check_options(info: ModelInfo, options: Options, expect: Value, expect_warnings: &[&str]) {
    let model = Anthropic::new(info, "k").base_url("http://127.0.0.1:1");
    let (text, warnings) = body(
        &model,
        &Request::new()
            .tools([tool("read")])
            .options(options)
            .user("hi"),
    );
    let Value::Object(mut fields) = serde_json::from_str(&text).expect("JSON") else {
        unreachable!("an object")
    };
    for name in ["model", "stream", "tools", "messages"] {
        fields.remove(name).expect("every request has it");
    }
    assert_eq!(Value::Object(fields), expect);
    assert_eq!(warnings, expect_warnings);
}

fn info(control: ThinkingControl) -> ModelInfo {
    ModelInfo {
        max_output_tokens: 64_000,
        structured: Structured::Native,
        efforts: Effort::ALL.to_vec(),
        thinking: control,
        ..ModelInfo::new(ID)
    }
}

#[test]
fn thinking_is_a_level_when_the_model_takes_levels() {
    let check = |effort, name: &str| {
        let expect = json!({
            "max_tokens": 64_000, "thinking": {"type": "adaptive", "display": "summarized"},
            "output_config": {"effort": name},
        });
        check_options(
            info(ThinkingControl::Level),
            Options {
                thinking: Some(effort),
                ..Options::default()
            },
            expect,
            &[],
        );
    };
    check(Effort::Minimal, "low");
    check(Effort::Low, "low");
    check(Effort::Medium, "medium");
    check(Effort::High, "high");
    check(Effort::Max, "max");
    let off = json!({"max_tokens": 64_000, "thinking": {"type": "disabled"}});
    check_options(
        info(ThinkingControl::Level),
        Options {
            thinking: Some(Effort::Off),
            ..Options::default()
        },
        off,
        &[],
    );
    check_options(
        info(ThinkingControl::Level),
        Options::default(),
        json!({"max_tokens": 64_000}),
        &[],
    );
}

#[test]
fn thinking_is_a_budget_when_the_model_takes_tokens() {
    let check = |limit: Option<u64>, effort, max_tokens: u64, budget: u64, warnings: &[&str]| {
        let mut options = Options {
            thinking: Some(effort),
            ..Options::default()
        };
        options.max_output_tokens = limit;
        let expect = json!({"max_tokens": max_tokens, "thinking": {"type": "enabled", "budget_tokens": budget}});
        check_options(info(ThinkingControl::Budget), options, expect, warnings);
    };
    check(None, Effort::Minimal, 64_000, 1_024, &[]);
    check(None, Effort::Low, 64_000, 2_048, &[]);
    check(None, Effort::Medium, 64_000, 8_192, &[]);
    check(None, Effort::High, 64_000, 16_384, &[]);
    check(None, Effort::Max, 64_000, 32_768, &[]);
    let raised = "max_output_tokens was raised from 2000 to 9216: thinking takes up to 8192";
    check(Some(2_000), Effort::Medium, 9_216, 8_192, &[raised]);
    check(Some(9_216), Effort::Medium, 9_216, 8_192, &[]);
    let small = |limit| ModelInfo {
        max_output_tokens: limit,
        ..info(ThinkingControl::Budget)
    };
    let expect =
        json!({"max_tokens": 4_096, "thinking": {"type": "enabled", "budget_tokens": 3_072}});
    check_options(
        small(4_096),
        Options {
            thinking: Some(Effort::High),
            ..Options::default()
        },
        expect,
        &[],
    );
    check_options(
        small(2_047),
        Options {
            thinking: Some(Effort::High),
            ..Options::default()
        },
        json!({"max_tokens": 2_047}),
        &[
            "thinking was dropped: anthropic/claude-sonnet-5 takes 1024 tokens for it at least, of the 2047 that its reply \
           may have",
        ],
    );
    let off = json!({"max_tokens": 64_000, "thinking": {"type": "disabled"}});
    check_options(
        info(ThinkingControl::Budget),
        Options {
            thinking: Some(Effort::Off),
            ..Options::default()
        },
        off,
        &[],
    );
    let given = Options {
        thinking: Some(Effort::High),
        ..Options::default()
    }
    .extra("max_tokens", 3_000);
    let expect =
        json!({"max_tokens": 3_000, "thinking": {"type": "enabled", "budget_tokens": 1_976}});
    check_options(info(ThinkingControl::Budget), given, expect, &[]);
}

#[test]
fn options_are_dropped_when_thinking_excludes_them() {
    let forced = || Options {
        temperature: Some(0.5),
        tool_choice: ToolChoice::Required,
        ..Options::default()
    };
    let no_temperature =
        "temperature was dropped: anthropic/claude-sonnet-5 takes none while it thinks";
    check_options(
        info(ThinkingControl::Level),
        Options {
            thinking: Some(Effort::Low),
            ..forced()
        },
        json!({
            "max_tokens": 64_000, "thinking": {"type": "adaptive", "display": "summarized"},
            "output_config": {"effort": "low"}, "tool_choice": {"type": "any"},
        }),
        &[no_temperature],
    );
    check_options(
        info(ThinkingControl::Budget),
        Options {
            thinking: Some(Effort::Low),
            ..forced()
        },
        json!({"max_tokens": 64_000, "thinking": {"type": "enabled", "budget_tokens": 2_048}}),
        &[
            no_temperature,
            "tool_choice was dropped: anthropic/claude-sonnet-5 cannot be made to call while it thinks",
        ],
    );
    let off = json!({
        "max_tokens": 64_000, "temperature": 0.5, "thinking": {"type": "disabled"}, "tool_choice": {"type": "any"},
    });
    check_options(
        info(ThinkingControl::Budget),
        Options {
            thinking: Some(Effort::Off),
            ..forced()
        },
        off,
        &[],
    );
    let theirs = Options {
        thinking: Some(Effort::Low),
        ..forced()
    }
    .extra("thinking", json!({"type": "between_tools"}));
    let expect = json!({
        "max_tokens": 64_000, "temperature": 0.5, "thinking": {"type": "between_tools"}, "tool_choice": {"type": "any"},
    });
    check_options(info(ThinkingControl::Level), theirs, expect, &[]);
    check_options(
        info(ThinkingControl::Level),
        Options {
            temperature: Some(1.5),
            ..Options::default()
        },
        json!({"max_tokens": 64_000, "temperature": 1.0}),
        &["temperature was lowered from 1.5 to 1: anthropic/claude-sonnet-5 takes no more"],
    );
}

#[test]
fn tool_choice_is_sent_when_it_is_not_the_default() {
    let check = |choice: ToolChoice, sequential: bool, expect: Value| {
        let options = Options {
            tool_choice: choice,
            ..Options::default()
        };
        let options = if sequential {
            Options {
                sequential_calls: true,
                ..options
            }
        } else {
            options
        };
        check_options(
            info(ThinkingControl::Level),
            options,
            json!({"max_tokens": 64_000, "tool_choice": expect}),
            &[],
        );
    };
    check(
        ToolChoice::Auto,
        true,
        json!({"type": "auto", "disable_parallel_tool_use": true}),
    );
    check(ToolChoice::None, true, json!({"type": "none"}));
    check(ToolChoice::Required, false, json!({"type": "any"}));
    check(
        ToolChoice::Required,
        true,
        json!({"type": "any", "disable_parallel_tool_use": true}),
    );
    check(
        ToolChoice::Named("read".into()),
        false,
        json!({"type": "tool", "name": "read"}),
    );
    let request = Request::new()
        .options(Options {
            tool_choice: ToolChoice::None,
            ..Options::default()
        })
        .user("hi");
    assert!(
        !body(&model(), &request).0.contains("tool_choice"),
        "without tools there is nothing to choose"
    );
}

#[test]
fn format_is_sent_when_the_model_can_be_held_to_it() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "integer", "minimum": 1}}, "required": ["a"]});
    let options = |schema: &Value| Options {
        format: Some(Format::new("answer", schema.clone())),
        ..Options::default()
    };
    let closed = json!({
        "type": "object", "required": ["a"], "additionalProperties": false,
        "properties": {"a": {"type": "integer", "description": "{\"minimum\":1}"}},
    });
    let format = json!({"type": "json_schema", "schema": closed});
    let expect = json!({"max_tokens": 64_000, "output_config": {"format": &format}});
    check_options(info(ThinkingControl::Level), options(&schema), expect, &[]);
    let more = Options {
        thinking: Some(Effort::High),
        ..options(&schema)
    }
    .extra("output_config", json!({"effort": "xhigh"}));
    let expect = json!({
        "max_tokens": 64_000, "thinking": {"type": "adaptive", "display": "summarized"},
        "output_config": {"effort": "xhigh", "format": format},
    });
    check_options(info(ThinkingControl::Level), more, expect, &[]);
    check_options(
        info(ThinkingControl::Level),
        options(&json!({"type": "object"})),
        json!({"max_tokens": 64_000}),
        &["format was dropped: anthropic/claude-sonnet-5 cannot be held to the schema answer"],
    );
    check_options(
        ModelInfo {
            structured: Structured::Tool,
            ..info(ThinkingControl::Level)
        },
        options(&schema),
        json!({"max_tokens": 64_000}),
        &["format was dropped: anthropic/claude-sonnet-5 takes no schema for its text"],
    );
}

#[test]
fn server_tools_are_declared_after_the_others_when_there_are_any() {
    let search = || json!({"type": "web_search_20250305", "name": "web_search"});
    let check = |options: Options, tools: Value, system_is_marked: bool| {
        let request = Request::new()
            .system("s")
            .tools([tool("read")])
            .options(options);
        let value: Value = serde_json::from_str(&marked(&model(), &request)).expect("JSON");
        assert_eq!(value["tools"], tools);
        assert_eq!(value["system"].is_array(), system_is_marked);
    };
    let read = json!({"name": "read", "description": "Reads.", "input_schema": {"type": "object", "properties": {}}});
    let mut one = search();
    one["cache_control"] = json!({"type": "ephemeral"});
    check(
        Options {
            server_tools: vec![search()],
            ..Options::default()
        },
        json!([read, one]),
        true,
    );
    let mut deferred = search();
    deferred["defer_loading"] = true.into();
    check(
        Options {
            server_tools: vec![deferred.clone()],
            ..Options::default()
        },
        json!([read, deferred]),
        true,
    );
    check(
        Options {
            server_tools: vec![one.clone(), search()],
            ..Options::default()
        },
        json!([read, one, search()]),
        true,
    );
    check(
        Options {
            server_tools: vec![one.clone(), one.clone()],
            ..Options::default()
        },
        json!([read, one, one]),
        false,
    );
}

#[test]
fn stop_sequences_are_dropped_when_they_are_blank() {
    let options = |stops: &[&str]| Options {
        stop: stops.iter().map(|it| (*it).into()).collect(),
        ..Options::default()
    };
    let warn = |stop: &str| {
        format!("stop sequence {stop} was dropped: this wire takes none that is blank")
    };
    check_options(
        info(ThinkingControl::Level),
        options(&["", "END", "\n\n"]),
        json!({"max_tokens": 64_000, "stop_sequences": ["END"]}),
        &[&*warn("\"\""), &*warn(r#""\n\n""#)],
    );
    check_options(
        info(ThinkingControl::Level),
        options(&[" "]),
        json!({"max_tokens": 64_000}),
        &[&*warn("\" \"")],
    );
}

#[test]
fn cache_is_warned_about_once_when_it_is_not_marked() {
    let check = |model: &Anthropic, options: Options, expect: &[&str]| {
        let mut request = Request::new().options(options).user("hi");
        assert_eq!(body(model, &request).1, expect);
        request
            .entries
            .push(Entry::User(UserMessage::text("go on")));
        assert_eq!(body(model, &request).1, expect);
    };
    let elsewhere = model().base_url("https://a.example");
    let warn = "cache was dropped: the prompt cache is not marked at this base URL";
    check(
        &elsewhere,
        Options {
            cache: Cache::Long,
            ..Options::default()
        },
        &[warn],
    );
    check(&elsewhere, Options::default(), &[]);
    check(
        &elsewhere,
        Options {
            cache: Cache::Long,
            ..Options::default()
        }
        .extra("cache_control", json!({"type": "ephemeral"})),
        &[],
    );
    check(
        &elsewhere.cache_marks(),
        Options {
            cache: Cache::Long,
            ..Options::default()
        },
        &[],
    );
    check(
        &model(),
        Options {
            cache: Cache::Long,
            ..Options::default()
        },
        &[],
    );
}
