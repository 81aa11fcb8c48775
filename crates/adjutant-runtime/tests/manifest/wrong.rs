//! Manifests that are wrong, each in one way, and what is told about them.

use std::fmt::Write;

use crate::folder::Folder;

/// What is wrong, and a manifest that is wrong in that way.
const WRONG: &[(&str, &str)] = &[
    // The text.
    ("empty", ""),
    ("a list", "- name: a\n"),
    ("a text", "hello\n"),
    ("no end of a list", "name: a\nskills: [a, b\nprefix: x\n"),
    ("a tab", "name: a\nlimits:\n\tmax_turns: 3\n"),
    ("two documents", "name: a\nprefix: x\n---\nname: b\n"),
    ("a key twice", "name: a\nprefix: x\nname: b\n"),
    (
        "a key twice in JSON",
        r#"{"name": "a", "options": {"temperature": 1, "temperature": 2}}"#,
    ),
    ("a tag", "name: !!str a\nprefix: x\n"),
    ("a merge key", "name: a\noptions: {<<: {temperature: 1}}\n"),
    ("a list as a key", "name: a\n? [x, y]\n: z\n"),
    ("an unknown anchor", "name: a\nprefix: *none\n"),
    // Variables.
    (
        "an unset variable",
        "name: a\nprefix: x\ninstructions: |\n  First.\n  You are ${NOBODY}.\n",
    ),
    (
        "an unset variable in a line",
        "name: a\nmodel: offline/${MODEL}\n",
    ),
    ("a variable without an end", "name: a\nprefix: ${TEAM\n"),
    (
        "a variable with a strange name",
        "name: a\nprefix: ${1x-y}\n",
    ),
    (
        "a variable of a credential",
        "name: a\nprefix: x\nenvironment: {WHERE: '${OPENAI_API_KEY:-none}'}\n",
    ),
    // Fields and types.
    (
        "an unknown field",
        "name: a\nprefix: x\nintructions: Be brief.\n",
    ),
    (
        "an unknown field of an agent",
        "name: a\nentry_agent: x\nagents: [{name: x, tolboxes: [files]}]\n",
    ),
    (
        "an unknown field far from any",
        "name: a\nlimits: {zzzzzzzz: 1}\n",
    ),
    ("a text for a number", "name: a\nmax_turns: many\n"),
    ("a number for a text", "name: a\nprefix: 12\n"),
    (
        "a truth value for a text",
        "name: a\nprefix: x\nlabels: {on_call: true}\n",
    ),
    ("a negative number", "name: a\nmax_turns: -1\n"),
    ("a number with a fraction", "name: a\nmax_turns: 2.5\n"),
    (
        "a number beyond its type",
        "name: a\nmax_turns: 4294967296\n",
    ),
    (
        "a number beyond every type",
        "name: a\nbudget: {tokens: 99999999999999999999}\nprefix: x\n",
    ),
    ("a text for a list", "name: a\nskills: all\n"),
    ("a list for a mapping", "name: a\noptions: [1]\n"),
    ("a mapping for a text", "name: {first: a}\nprefix: x\n"),
    (
        "a number for a truth value",
        "name: a\nlimits: {sequential: 1}\n",
    ),
    (
        "a time without a unit",
        "name: a\nlimits: {timeout: 30, grace: 5 s, tool_timeout: 1.5s}\n",
    ),
    (
        "a size without a unit",
        "name: a\nlimits: {max_result: 64k}\n",
    ),
    (
        "an unknown choice",
        "name: a\noptions: {thinking: hihg}\naccess: {default: perhaps}\n",
    ),
    (
        "a missing field",
        "name: a\nmodel: {fallbacks: [offline/planner]}\nboard: {}\n",
    ),
    (
        "a wrong value of a field that must be there",
        "name: a\naccess: {rules: [{tools: [x], then: alow}]}\n",
    ),
    (
        "nothing for a text",
        "name: a\ndescription: x\ncontext: [~]\n",
    ),
    ("infinity", "name: a\noptions: {temperature: .inf}\n"),
    // The whole.
    ("no name", "prefix: x\n"),
    ("an empty name", "name: ''\nprefix: x\n"),
    ("a strange name", "name: a/../b\nprefix: x\n"),
    (
        "a long name",
        "name: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\nprefix: x\n",
    ),
    ("no agent", "name: a\ndescription: x\n"),
    (
        "both forms",
        "name: a\ninstructions: x\nagents: [{name: b}]\n",
    ),
    ("an unknown version", "adjutant: 2\nname: a\nprefix: x\n"),
    (
        "an agent without a name",
        "name: a\nagents: [{prefix: x}]\n",
    ),
    (
        "two agents of one name",
        "name: a\nentry_agent: b\nagents: [{name: b}, {name: B}]\n",
    ),
    (
        "no entry agent",
        "name: a\nagents: [{name: b}, {name: c}]\n",
    ),
    (
        "an unknown entry agent",
        "name: a\nentry_agent: leed\nagents: [{name: lead}, {name: c}]\n",
    ),
    (
        "strange labels",
        "name: a\nprefix: x\nlabels: {'a b': x, ok: \"two\\nlines\"}\n",
    ),
    (
        "an image",
        "name: a\nprefix: x\nimage: {reference: 'r.example/a:1'}\n",
    ),
    // Models and providers.
    (
        "an unknown provider",
        "name: a\nmodel: {name: antropic/x, fallbacks: [gpt-5, offline/planner, offline/planner]}\n",
    ),
    (
        "a provider that is wrong",
        "name: a\nprefix: x\nproviders: [{name: acme, base_url: 'ftp://x', urls: 1}]\n",
    ),
    (
        "a provider without a name",
        "name: a\nprefix: x\nproviders: [{base_url: 'https://x.example'}]\n",
    ),
    (
        "a provider like none",
        "name: a\nprefix: x\nproviders: [{name: acme, base_url: 'https://x.example/v1', like: vlm}]\n",
    ),
    (
        "an address with a password",
        "name: a\nprefix: x\nproviders: [{name: acme, base_url: 'https://u:p@x.example/v1'}]\n",
    ),
    (
        "a provider twice",
        "name: a\nprefix: x\nproviders: [{name: acme}, {name: acme}]\n",
    ),
    (
        "a header with a key",
        "name: a\nproviders: [{name: acme, headers: {Authorization: Bearer x}}]\noptions: {headers: {x-api-key: y, 'a b': c}}\n",
    ),
    (
        "a model that is wrong",
        "name: a\nprefix: x\nmodels: [{id: acme/large, context_windw: 1000, max_output_tokens: 10}]\n",
    ),
    (
        "a model with more output than window",
        "name: a\nprefix: x\nmodels: [{id: a/b, context_window: 10, max_output_tokens: 100}]\n",
    ),
    (
        "options out of range",
        "name: a\noptions: {temperature: 2.1, max_output_tokens: 0, stop: ['']}\n",
    ),
    (
        "limits of a model out of range",
        "name: a\nmodel: {name: offline/planner, retries: 1000, requests_per_minute: 0, input_tokens_per_minute: 0, timeout: 0s}\n",
    ),
    (
        "a budget of nothing",
        "name: a\nprefix: x\nbudget: {tokens: 0, cost_usd: 0, requests: 0, time: 0s, agents: 0}\n",
    ),
    (
        "a negative budget",
        "name: a\nprefix: x\nbudget: {cost_usd: -1.5}\n",
    ),
    // Agents.
    (
        "an unknown toolbox",
        "name: a\ntoolboxes: [file, {name: boards}, files, files]\n",
    ),
    (
        "a toolbox without what it needs",
        "name: a\ntoolboxes: [board, notes, memory, reflections]\n",
    ),
    (
        "a toolbox that is wrong",
        "name: a\ntoolboxes: [{name: background, only: [], except: ['a b'], prefix: 'a.b', timeout: 0s, max_output: 0B, root: docs}]\n",
    ),
    (
        "an address that is none",
        "name: a\ntoolboxes: [peers]\npeers: [{name: c, description: x, address: here}]\n",
    ),
    (
        "peers that cannot be asked",
        "name: a\ntoolboxes: [peers]\npeers:\n  - {name: b, description: x, agent: c, address: '127.0.0.1:7'}\n  \
         - {name: B, description: '', address: '10.0.0.1:7', token_variable: 1x}\n  \
         - {name: c d, description: x, token_variable: TOKEN}\n",
    ),
    (
        "agents anywhere that cannot be asked",
        "name: a\ntoolboxes: [peers]\npeers:\n  - {name: b, description: x, a2a: 'ftp://b'}\n  \
         - {name: c, description: x, a2a: 'https://c', agent: d}\n  \
         - {name: d, description: x, a2a: 'http://d.example.org', token_variable: TOKEN}\n  \
         - {name: e, description: x, a2a: 'https://me:pass@e', token_variable: 1x}\n",
    ),
    ("peers that are not named", "name: a\ntoolboxes: [peers]\n"),
    (
        "an unknown tool",
        "name: a\ntools: [cout]\nprocess_tools: [{name: count, description: x, binary: bin/count}]\n",
    ),
    (
        "an unknown skill",
        "name: a\nskill_folders: [skills]\nskills: [countin, counting, counting]\n",
    ),
    ("skills without folders", "name: a\nskills: ['*']\n"),
    ("an unknown effect", "name: a\neffects: [{kind: compct}]\n"),
    (
        "wrong parameters of an effect",
        "name: a\neffects: [{kind: compact, params: {treshold: 0.5}}, {kind: compact, params: 3}]\n",
    ),
    (
        "a rule that does nothing",
        "name: a\naccess: {rules: [{tools: [], then: ask}, {tools: ['a b'], then: allow, say: Hm.}]}\n",
    ),
    (
        "rules that are wrong",
        "name: a\ntoolboxes: [{name: files, prefix: my_}]\nrules:\n  allow: ['shell(git log *)', 'shell(git', 'count(x)']\n  deny: ['', 'allow x']\n",
    ),
    (
        "rules in no mode",
        "name: a\nrules: {mode: yolo, alow: [x]}\n",
    ),
    (
        "turns twice",
        "name: a\nmax_turns: 3\nlimits: {max_turns: 4}\n",
    ),
    (
        "limits out of range",
        "name: a\nmax_turns: 0\nmax_concurrency: 0\nlimits: {max_parallel_tools: 0, timeout: 0s, max_result: 0B}\n",
    ),
    (
        "limits that contradict each other",
        "name: a\nlimits: {sequential: true, max_parallel_tools: 4}\n",
    ),
    ("an endless time", "name: a\nlimits: {timeout: 4000000d}\n"),
    (
        "empty instructions",
        "name: a\ninstructions: ' '\nexpertise: ['']\nprefix: a very long prefix\nestimated_cost: ''\n",
    ),
    // Crews.
    (
        "tasks for nobody",
        "name: a\nentry_agent: b\nagents:\n  - {name: b, delegation: {depth: 1, agents: [b, d, c, c]}}\n  - {name: c, description: x}\n",
    ),
    ("depth without others", "name: a\ndelegation: {depth: 1}\n"),
    (
        "others without depth",
        "name: a\nentry_agent: b\nagents: [{name: b, delegation: {agents: [c], handoffs: 1}}, {name: c}]\n",
    ),
    (
        "nobody says what it is for",
        "name: a\nentry_agent: b\nagents: [{name: b, transfers: [c]}, {name: c}]\n",
    ),
    (
        "a transfer to nobody",
        "name: a\nentry_agent: b\nagents: [{name: b, transfers: [b, cc]}, {name: c}]\n",
    ),
    ("a team of nobody", "name: a\nteam: {size: 0}\n"),
    (
        "a team of strangers",
        "name: a\nteam: {members: [zoe], member_timeout: 0s, member_budget: {tokens: 0}}\n",
    ),
    // Tools.
    (
        "a tool without a description",
        "name: a\nprefix: x\nprocess_tools: [{name: 'a b', description: '', binary: bin/count}]\n",
    ),
    (
        "two tools of one name",
        "name: a\ntools: [x]\nprocess_tools: [{name: x, description: x, binary: sh}, {name: X, description: x, binary: sh}]\n",
    ),
    (
        "parameters that are no schema",
        "name: a\ntools: [x, y]\nprocess_tools:\n  - {name: x, description: x, binary: sh, parameters: {type: object, properties: {b: {type: objekt}}}}\n  \
         - {name: y, description: x, binary: sh, parameters: {type: array}}\n",
    ),
    (
        "a place without an argument",
        "name: a\ntools: [x]\nprocess_tools:\n  - name: x\n    description: x\n    binary: sh\n    args: ['{city}', '{cty}', '{}', '{\"a\": 1}']\n    \
         parameters: {type: object, properties: {city: {}}}\n",
    ),
    (
        "a tool that is wrong",
        "name: a\ntools: [x]\nprocess_tools: [{name: x, description: x, binary: sh, sha256: ABC, timeout: 0s, max_output: 1GiB}]\n",
    ),
    (
        "a sandbox that is wrong",
        "name: a\ntools: [x]\nprocess_tools:\n  - {name: x, description: x, binary: sh, sandbox: {read: [none], write: [''], danger_without_any: true}}\n  \
         - {name: y, description: x, binary: sh, sandbox: {network: maybe, netwrk: true}}\n",
    ),
    (
        "variables that tools cannot have",
        "name: a\nprefix: x\nenvironment: {PATH: /bin, ADJUTANT_X: y, MY_TOKEN: z, 'A-B': c, DB_PASSWORD_FILE: d, HOME: e}\n",
    ),
    (
        "a credential",
        "name: a\nprefix: x\nenvironment: {WHERE: sk-abcdefghijklmnopqrstuvwxyz}\n",
    ),
    // Servers.
    (
        "servers that are nothing, or two things",
        "name: a\ntoolboxes: [w, x, y, z]\nmcp:\n  servers:\n    w: {command: sh, headers: {A: b}, auth: {scopes: ['a b']}}\n    x: {}\n    \
         y: {command: sh, url: 'https://x.example/mcp'}\n    z: {url: 'https://x.example/mcp', args: [a], env: {A: b}, cwd: docs, sandbox: {network: true}}\n",
    ),
    (
        "servers that are called as something else",
        "name: a\ntoolboxes: [files]\nmcp: {servers: {files: {command: sh}, 'a b': {command: sh}}}\n",
    ),
    (
        "a server that is wrong",
        "name: a\ntoolboxes: [x]\nmcp:\n  servers:\n    x: {command: ./none, cwd: none, sha256: ABC, prefix: a.b, tools: [], timeout: 0s, \
         env: {HOME: x, ADJUTANT_X: y, 'A-B': c}, sandbox: {write: [none]}}\n",
    ),
    (
        "a server of no revision",
        "name: a\ntoolboxes: [x]\nmcp: {servers: {x: {command: sh, revision: '2025-11-26', comand: sh}}}\n",
    ),
    (
        "addresses that no server has",
        "name: a\ntoolboxes: [v, w, x, y]\nmcp:\n  servers:\n    v: {url: mcp.example.org}\n    w: {url: 'ftp://x.example'}\n    \
         x: {url: 'https://u:p@x.example/mcp'}\n    y: {url: 'https://', auth: {token_command: [''], client_secret_variable: 1x}}\n",
    ),
    (
        "credentials of servers",
        "name: a\ntoolboxes: [x, y]\nmcp:\n  servers:\n    x: {command: sh, args: [--key=sk-abcdefghijklmnopqrstuvwxyz], env: {MY_TOKEN: abc}}\n    \
         y: {url: 'https://x.example/mcp', headers: {Authorization: Bearer abc, 'a b': c}}\n",
    ),
    (
        "variables of servers",
        "name: a\ntoolboxes: [x]\nmcp: {servers: {x: {command: sh, args: ['${A', '${1x}'], env: {B: '${B'}}}}\n",
    ),
    (
        "a server by another name",
        "name: a\ntoolboxes: [docs, {name: isues}]\nmcp: {servers: {doc: {command: sh}, issues: {url: 'https://x.example/mcp'}}}\n",
    ),
    // Stores.
    (
        "a board among lines",
        "name: a\nsessions: {store: {kind: jsonl}}\nboard: {name: b}\nnotes: {name: n}\nmemory: {owner: o}\nreflections: {}\n",
    ),
    (
        "a database without an address",
        "name: a\nprefix: x\nsessions: {store: {kind: postgres, path: x}}\n",
    ),
    (
        "an address for a file",
        "name: a\nprefix: x\nsessions: {store: {url_variable: X}}\n",
    ),
    (
        "a path in memory",
        "name: a\nprefix: x\nsessions: {store: {kind: memory, path: x}}\n",
    ),
    (
        "an unknown store",
        "name: a\nprefix: x\nsessions: {store: {kind: sqlit}, durability: always, default_session: ''}\n",
    ),
    (
        "a memory of nobody",
        "name: a\nprefix: x\nmemory: {owner: '', limit: 0}\nboard: {name: 'a b'}\n",
    ),
    (
        "files over each other",
        "name: a\nprefix: x\ndata: [{file: docs/style.md}, {file: prompts/lead.md, to: style.md}]\n",
    ),
    // Others.
    (
        "a parent that is not there",
        "extends: nothing.yaml\nname: a\nprefix: x\n",
    ),
    (
        "a parent that is a list",
        "extends: [a.yaml]\nname: a\nprefix: x\n",
    ),
    ("an include that is a text", "include: crew/*.md\nname: a\n"),
];

#[test]
fn wrong_manifests_are_told_with_place_and_hint() {
    let folder = Folder::new();
    let mut told = String::new();
    for (what, text) in WRONG {
        let problems = folder
            .read(text)
            .err()
            .map_or("nothing".to_owned(), |it| folder.plain(&it.to_string()));
        assert_ne!(problems, "nothing", "{what}");
        writeln!(told, "# {what}\n{problems}\n").expect("a string takes anything");
    }
    assert!(WRONG.len() >= 60);
    insta::assert_snapshot!("wrong_manifests", told.trim_end());
}

#[test]
fn no_secret_of_a_variable_is_repeated_in_a_problem() {
    let folder = Folder::new();
    let error = folder.wrong("name: a\nprefix: ${DB_PASSWORD}\nprovders: []\n");
    assert!(error.contains("a manifest holds no credentials"), "{error}");
}
