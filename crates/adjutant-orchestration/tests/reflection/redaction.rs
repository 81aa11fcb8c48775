//! What must never be written, and what must not be taken for it.

use std::fs;

use adjutant_orchestration::{
    Reflections,
    reflection::{Failed, MAX_TASK_BYTES, Redactor},
};

use super::failed;

/// A text, and the part of it that is a secret. In pieces, so that no scanner takes this file for a leak.
fn secrets() -> Vec<(String, String)> {
    let of = |before: &str, secret: &[&str], after: &str| {
        let secret = secret.concat();
        (format!("{before}{secret}{after}"), secret)
    };
    let random = "Zx8QmT4vLp9RkW2nBd7HsYc3";
    let hex = "9f86d081884c7d659a2feaa0c55ad015";
    vec![
        of("the key ", &["sk-", "proj-", random], " was refused"),
        of("use ", &["sk-ant-", "api03-", random], "."),
        of("stripe ", &["sk_", "live_", random], ""),
        of("hook secret ", &["whsec_", random], ""),
        of("pushed with ", &["ghp_", random, random], ""),
        of("pushed with ", &["github_pat_", random, "_", random], ""),
        of("gitlab says ", &["glpat-", random], ""),
        of("slack: ", &["xoxb-", "123456789012-", random], ""),
        of(
            "post to ",
            &["https://hooks.slack.com/services/", "T000/B000/", random],
            "",
        ),
        of(
            "post to ",
            &["https://discord.com/api/webhooks/", "123/", random],
            "",
        ),
        of("aws ", &["AKIA", "IOSFODNN7EXAMPLE"], ""),
        of(
            "AWS_SECRET_ACCESS_KEY=",
            &["wJalrXUtnFEMI/", "K7MDENG/bPxRfiCYzzzzzzKEY1"],
            "",
        ),
        of(
            "it was ",
            &["kR7pQz2v/Tn8LwXe4Bd/", "mYc9HsJf6GaU3oNiVb5x"],
            " I think",
        ),
        of("google ", &["AIza", "SyA", random, random], ""),
        of("oauth ", &["ya29.", random], ""),
        of(
            "jwt ",
            &[
                "eyJhbGciOiJIUzI1NiJ9",
                ".",
                "eyJzdWIiOiIxMjM0NTY3ODkwIn0",
                ".",
                random,
            ],
            "",
        ),
        of("hugging ", &["hf_", random], ""),
        of("npm ", &["npm_", random, "1234567890ab"], ""),
        of("pypi ", &["pypi-", "AgEIcHlwaS5vcmc", random], ""),
        of("mail ", &["SG.", random, ".", random], ""),
        of("vault ", &["hvs.", random], ""),
        of("telegram ", &["123456789", ":AA", random, random], ""),
        of("mailgun ", &["key-", hex], ""),
        of(
            "",
            &[
                "-----BEGIN RSA PRIVATE",
                " KEY-----\nMIIEow\nabc\n-----END RSA PRIVATE",
                " KEY-----",
            ],
            "\nafter",
        ),
        of(
            "",
            &[
                "-----BEGIN OPENSSH PRIVATE",
                " KEY-----\nb3BlbnNzaC1rZXktdjEA\ncut off",
            ],
            "",
        ),
        of(
            "",
            &[
                "-----BEGIN PGP PRIVATE",
                " KEY BLOCK-----\nlQOYBF\n-----END PGP PRIVATE",
                " KEY BLOCK-----",
            ],
            "",
        ),
        of("Authorization: Bearer ", &[random], "\nHost: x"),
        of("authorization: Basic ", &["dXNlcjpwYXNz"], ""),
        of(
            "-H 'Authorization: token ",
            &[random],
            "' https://example.org",
        ),
        of("{\"Authorization\": \"Bearer ", &["abcdefgh"], "\"}"),
        of("we sent Bearer ", &[random], " with it"),
        of("Cookie: ", &["session=abcdef; csrf=xyz"], "\n"),
        of("Set-Cookie: ", &["sid=s%3Aabc; Path=/"], "\n"),
        of("X-Api-Key: ", &["abc123def456"], "\n"),
        of("postgres://app:", &["hunter2"], "@db:5432/app"),
        of("https://user:", &["p@ss:word"], "@example.org/path"),
        of("curl -u ada:", &["lovelace"], " https://example.org"),
        of("mysql --password ", &["tiger"], " -h db"),
        of("mysql --password=", &["tiger"], " -h db"),
        of("deploy --api-key \"", &["abc def"], "\""),
        of("export DB_PASSWORD=", &["letmein"], ""),
        of("OPENAI_API_KEY=", &["abcdefghij"], ""),
        of("GITHUB_TOKEN='", &["abcdefghij"], "'"),
        of("password = \"", &["correct horse battery staple"], "\""),
        of("password: ", &["hunter2"], ""),
        of("the password is ", &["hunter2"], ", they said"),
        of("{\"client_secret\": \"", &["abcdefghij"], "\"}"),
        of("let api_key = \"", &["abcdefghij"], "\";"),
        of("accessToken: '", &["abcdefghij"], "',"),
        of("refresh_token=", &["abc123def456"], "&grant=x"),
        of("https://x.blob.example/a?sv=1&sig=", &["abcdefgh%3D"], ""),
        of("AccountKey=", &[random, "=="], ";EndpointSuffix=x"),
        of("value ", &[random, "QpL5", "vXjK1fGa"], " found in the log"),
    ]
}

#[test]
fn secret_is_taken_out_whatever_its_shape_is() {
    let (redactor, secrets) = (Redactor::new(), secrets());
    assert!(secrets.len() >= 25);
    for (text, secret) in secrets {
        let clean = redactor.redact(&text);
        assert!(
            !clean.contains(&secret) && clean.contains("[redacted]"),
            "{text}\n-> {clean}"
        );
        // No large part of it is left, either.
        let parts: Vec<&str> = secret
            .split(['\n', ' ', '/'])
            .filter(|part| part.len() > 11)
            .collect();
        assert!(
            !parts.iter().any(|part| clean.contains(part)),
            "{text}\n-> {clean}"
        );
        assert_eq!(redactor.redact(&clean), clean, "it does not change again");
    }
}

#[test]
fn what_stands_around_a_secret_stays() {
    let redactor = Redactor::new();
    for (text, expect) in [
        (
            "postgres://app:hunter2@db:5432/app",
            "postgres://app:[redacted]@db:5432/app",
        ),
        (
            "export DB_PASSWORD=letmein && make",
            "export DB_PASSWORD=[redacted] && make",
        ),
        (
            "Authorization: Bearer abc\nHost: x",
            "Authorization: [redacted]\nHost: x",
        ),
        (
            "let api_key = \"abcdefghij\";",
            "let api_key = \"[redacted]\";",
        ),
        (
            "curl -u ada:lovelace https://example.org",
            "curl -u ada:[redacted] https://example.org",
        ),
    ] {
        assert_eq!(redactor.redact(text), expect);
    }
}

#[test]
fn ordinary_text_and_code_survive() {
    let ordinary = [
        "The build failed because the token stream was empty; the key insight is to retry.",
        "Password: required. The password is too short. Ask for a password, then a token.",
        "let token = next_token(&mut lexer);",
        "fn token(&self) -> Option<Token> { self.tokens.get(self.at) }",
        "struct Login { password: String, token: Token, api_key: Option<String>, secret: Vec<u8> }",
        "max_tokens = 4096, max_tokens: 4096, tokens=128, token_count: 17",
        "let password = prompt(\"Password\"); assert!(!password.is_empty());",
        "client = Client(token=token, api_key=api_key, secret=settings.secret)",
        "api_key = os.environ[\"OPENAI_API_KEY\"]; key = process.env.API_KEY",
        "export GITHUB_TOKEN=$TOKEN DB_PASSWORD=${DB_PASSWORD} API_KEY=<your key>",
        "Set OPENAI_API_KEY=\"\" or api_key=\"your-key-here\" or password=\"********\".",
        "commit 3f2504e04f8911d39a0c0305e82c3301aabbccdd fixes it",
        "sha256 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "id 550e8400-e29b-41d4-a716-446655440000 was not found",
        "crates/adjutant-orchestration/src/reflection/secrets.rs:120:9: error[E0308]: mismatched types",
        "search_finds_by_body_and_name_and_not_by_common_words_v2 failed after 12 ms",
        "https://example.org:8080/path?page=2&sort=name#top and ada@example.org at 10:30",
        "sk-learn, task-force, risk-averse, desk-based; ghp and xox are prefixes; AKIA is one too",
        "The bearer of this letter may pass. Basic understanding of authentication, token by token.",
        "author: Ada; authority: none; keyboard = \"qwerty\"; monkey: 1; compass=north; tokenizer: bpe",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n-----BEGIN PUBLIC KEY-----\nMFkw\n-----END PUBLIC KEY-----",
        "| task | status |\n|------|--------|\n| a | b |\n================================================",
        "docker run --rm -it -v /a:/b -p 8080:80 -u 1000 image; cargo test --token-count",
        "Größe: 17 ☕, naïve café — 日本語のテキスト",
    ];
    let redactor = Redactor::new();
    for text in ordinary {
        assert_eq!(redactor.redact(text), text);
    }
}

#[test]
fn named_values_are_taken_out_wherever_they_stand() {
    let redactor = Redactor::new().values(["swordfish", "swordfish-2", "", "ab"]);
    assert_eq!(
        redactor.redact("(swordfish-2)xswordfishy ab"),
        "([redacted])x[redacted]y ab"
    );
    assert!(!format!("{redactor:?}").contains("swordfish"));
    let redactor = Redactor::new().values(["sword/fish"]);
    for text in [
        "sword%2Ffish",
        "sword%2ffish",
        r"sword\/fish",
        r"sword\u002ffish",
        "c3dvcmQvZmlza",
        "N3b3JkL2Zpc2",
    ] {
        assert!(redactor.redact(text).starts_with("[redacted]"), "{text}");
    }
}

#[test]
fn redaction_takes_no_long_time_when_a_text_is_hostile() {
    let redactor = Redactor::new();
    for piece in [
        "-----BEGIN PRIVATE KEY-----",
        "a=",
        "password=",
        "https://a:",
        "Bearer ",
        "\"'",
        "eyJaaaaaaaa.",
        "--token ",
    ] {
        let text = piece.repeat(20_000 / piece.len());
        assert!(redactor.redact(&text).len() <= 4 * text.len());
    }
}

#[tokio::test]
async fn no_part_of_a_file_holds_a_secret() {
    let folder = tempfile::tempdir().expect("a folder");
    let reflections = Reflections::in_dir(folder.path()).redact(["swordfish"]);
    for (text, _) in secrets() {
        let failed = Failed {
            agent: "swordfish".into(),
            task: text.as_str().into(),
            summary: format!("swordfish {text}").into(),
            caveats: Some(text.as_str().into()),
            files_modified: vec![text.as_str().into()],
        };
        reflections.record(&failed).await.expect("it is recorded");
    }
    let entries = fs::read_dir(folder.path()).expect("it is a directory");
    for entry in entries {
        let entry = entry.expect("an entry");
        let file = fs::read_to_string(entry.path()).expect("a file");
        assert!(
            !file.contains("swordfish")
                && !entry.file_name().to_string_lossy().contains("swordfish")
        );
        for (_, secret) in secrets() {
            assert!(!file.contains(&secret), "{secret} in {file}");
        }
    }
}

#[tokio::test]
async fn secret_is_taken_out_before_a_text_is_cut() {
    let reflections = Reflections::in_memory();
    let secret = ["ghp_", &"Zx8QmT4vLp9RkW2nBd7HsYc3".repeat(2)].concat();
    let task = format!("{} {secret}", "x".repeat(MAX_TASK_BYTES - 20));
    reflections
        .record(&failed(&task, "No."))
        .await
        .expect("it is recorded");
    let listing = reflections.list().await.expect("a list");
    let kept = &listing.reflections[0].task;
    assert!(
        kept.len() <= MAX_TASK_BYTES && !kept.contains("ghp_"),
        "{}",
        &kept[kept.len() - 60..]
    );
}
