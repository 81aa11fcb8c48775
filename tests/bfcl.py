"""Berkeley Function-Calling Leaderboard: writes its functions as cases, and judges the requests that were recorded for them.

    bfcl.py cases DATA CASES       DATA: the directory of the package; CASES: one JSON case a line
    bfcl.py judge REQUESTS         REQUESTS: one {"case", "wire", "kind", "body"} a line

The judges are jsonschema, the request types of the vendors' own clients, and the vendors' documented restrictions.
Exit code 1 if a request is invalid.
"""

import json
import pathlib
import re
import sys
from collections import Counter

from jsonschema import Draft202012Validator

# The dataset's own names of types. `any` allows every value.
TYPES = {
    "dict": "object", "hashmap": "object", "hashtable": "object", "object": "object",
    "float": "number", "double": "number", "number": "number",
    "tuple": "array", "list": "array", "array": "array", "arraylist": "array",
    "queue": "array", "stack": "array",
    "long": "integer", "short": "integer", "byte": "integer", "bigint": "integer", "integer": "integer",
    "string": "string", "char": "string", "bool": "boolean", "boolean": "boolean",
}
POOL = 100


def schema_of(source):
    """The dataset's description of a type as a JSON schema."""
    schema = {}
    for name, value in source.items():
        if name == "type":
            mapped = TYPES.get(str(value).lower())
            if mapped:
                schema["type"] = mapped
        elif name == "properties":
            schema[name] = {key: schema_of(inner) for key, inner in value.items()}
        elif name == "items":
            schema[name] = schema_of(value)
        else:
            schema[name] = value
    return schema


def validator(schema):
    return Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)


def tool_of(function):
    return {
        "name": function["name"],
        "description": function.get("description", ""),
        "schema": schema_of(function["parameters"]),
    }


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]


def choices(values, schema):
    """The values that the dataset accepts for a parameter. An empty text means that it may be omitted."""
    accepted = []
    for value in values:
        if isinstance(value, dict):
            accepted += objects(value)
        elif isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
            accepted.append([objects(item)[0] for item in value])
        elif value != "" or schema.get("type") == "string" and len(values) == 1:
            accepted.append(value)
    return accepted


def objects(accepted):
    """Objects in which every accepted value of every member occurs."""
    members = {key: choices(values, {}) for key, values in accepted.items() if isinstance(values, list)}
    return turns({key: values for key, values in members.items() if values})


def turns(members):
    count = max([len(values) for values in members.values()], default=1)
    return [{key: values[turn % len(values)] for key, values in members.items()} for turn in range(count)]


def answers(expected, tools):
    """Every accepted value of every parameter occurs in one of the answers."""
    for call in expected:
        for name, parameters in call.items():
            index = next((i for i, tool in enumerate(tools) if tool["name"] == name), None)
            if index is None:
                yield name, None, None
                continue
            properties = tools[index]["schema"].get("properties", {})
            accepted = {key: choices(values, properties.get(key, {})) for key, values in parameters.items()}
            for arguments in turns({key: values for key, values in accepted.items() if values}):
                yield name, index, arguments


def cases(data, out):
    data = pathlib.Path(data) / "data"
    contradictions, pool, lines = [], {}, []
    for path in sorted(data.glob("BFCL_v4_*.json")):
        expected_path = data / "possible_answer" / path.name
        try:
            questions = read(path)
        except json.JSONDecodeError:
            continue  # format_sensitivity is an index of other files.
        expected = {line["id"]: line["ground_truth"] for line in read(expected_path)} if expected_path.exists() else {}
        for question in questions:
            functions = question.get("function") or []
            tools, names = [], set()
            for function in functions if isinstance(functions, list) else [functions]:
                if isinstance(function, dict) and function["name"] not in names:
                    names.add(function["name"])
                    tools.append(tool_of(function))
            truth = expected.get(question["id"], [])
            if not tools or not all(isinstance(call, dict) for call in truth) or not truth:
                pool.update({json.dumps(tool): tool for tool in tools})
                continue
            case = {"name": question["id"], "tools": tools, "answers": []}
            for name, index, arguments in answers(truth, tools):
                if index is None:
                    contradictions.append(f"{question['id']}: the answer calls {name}, which is not declared")
                    continue
                errors = list(validator(tools[index]["schema"]).iter_errors(arguments))
                if errors:
                    contradictions.append(f"{question['id']}: {name}: {errors[0].json_path}: {errors[0].message}")
                case["answers"].append({"tool": index, "arguments": arguments, "fits": not errors})
            lines.append(case)
    for path in sorted((data / "multi_turn_func_doc").glob("*.json")):
        pool.update({json.dumps(tool): tool for tool in map(tool_of, read(path))})
    # Functions without answers share requests, each name once.
    pools = []
    for tool in pool.values():
        target = next((it for it in pools if len(it) < POOL and tool["name"] not in it), None)
        if target is None:
            pools.append(target := {})
        target[tool["name"]] = tool
    lines += [{"name": f"pool_{i}", "tools": list(it.values()), "answers": []} for i, it in enumerate(pools)]
    pathlib.Path(out).write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
    count = sum(len(line["answers"]) for line in lines)
    tools = sum(len(line["tools"]) for line in lines)
    print(f"{len(lines)} cases, {tools} functions, {count} answers")
    unique = list(dict.fromkeys(contradictions))
    print(f"contradictory: {len(unique)} answers do not fit their own schema:")
    for line in unique:
        print(f"  {line[:160]}")


class Judges:
    """The vendors' request types, and what their documents restrict."""

    def __init__(self):
        from anthropic.types import message_create_params
        from google.genai import types as gemini
        from openai.types import responses
        from openai.types.chat import completion_create_params
        from pydantic import TypeAdapter

        self.gemini_types = gemini
        self.types = {
            "messages": TypeAdapter(message_create_params.MessageCreateParamsStreaming),
            "responses": TypeAdapter(responses.response_create_params.ResponseCreateParamsStreaming),
            "chat": TypeAdapter(completion_create_params.CompletionCreateParamsStreaming),
        }
        # The description lists the keywords that the API takes.
        description = gemini.GenerateContentConfig.model_fields["response_json_schema"].description
        self.gemini_keywords = set(re.findall(r"`([$\w]+)`", description))
        from anthropic import transform_schema
        self.anthropic_transform = transform_schema

    def judge(self, line):
        body, wire, kind = line["body"], line["wire"], line["kind"]
        try:
            if wire == "gemini":
                self.check_gemini_types(body)
            else:
                self.types[wire].validate_python(body)
        except Exception as error:  # pydantic_core.ValidationError
            yield f"the client's types: {str(error)[:300]}"
        yield from getattr(self, wire)(body) if kind == "tools" else getattr(self, f"{wire}_format")(body)

    def check_gemini_types(self, body):
        for content in body["contents"]:
            self.gemini_types.Content.model_validate(content)
        for tool in body.get("tools", []):
            self.gemini_types.Tool.model_validate(tool)
        self.gemini_types.GenerationConfig.model_validate(body.get("generationConfig", {}))

    def messages(self, body):
        # "Tool use", platform.claude.com, 2026-11; the pattern of keys is that of the error of the API.
        for tool in body["tools"]:
            yield from name_fits(tool["name"], r"[a-zA-Z0-9_-]{1,128}")
            yield from well_formed(tool["name"], tool["input_schema"])
            for place, schema in nodes(tool["input_schema"]):
                for key in schema.get("properties", {}):
                    if not re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", key):
                        yield f"{tool['name']}{place}: property key {key!r}"

    def functions(self, functions, longest):
        # "Function calling", platform.openai.com, 2026-11; arrays without items are refused in every mode.
        if len(functions) > 128:
            yield f"{len(functions)} tools"
        for tool in functions:
            yield from name_fits(tool["name"], r"[a-zA-Z0-9_-]{1,%d}" % longest)
            yield from well_formed(tool["name"], tool["parameters"])
            for place, schema in nodes(tool["parameters"]):
                if schema.get("type") == "array" and "items" not in schema:
                    yield f"{tool['name']}{place}: array schema missing items"
            if tool.get("strict"):
                yield from openai_strict(tool["name"], tool["parameters"])

    def responses(self, body):
        yield from self.functions(body["tools"], 64)

    def chat(self, body):
        yield from self.functions([tool["function"] for tool in body["tools"]], 64)

    def gemini(self, body):
        for tool in body["tools"]:
            for function in tool.get("functionDeclarations", []):
                # `FunctionDeclaration`, ai.google.dev/api, 2026-11.
                yield from name_fits(function["name"], r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}")
                schema = function.get("parametersJsonSchema")
                if schema is None:
                    continue
                yield from well_formed(function["name"], schema)
                for place, node in nodes(schema):
                    if node.get("type") == "array" and "items" not in node and "prefixItems" not in node:
                        yield f"{function['name']}{place}: array without items"

    def responses_format(self, body):
        format = body["text"]["format"]
        yield from well_formed("format", format["schema"])
        if format.get("strict"):
            yield from openai_strict("format", format["schema"])

    def chat_format(self, body):
        format = body["response_format"]["json_schema"]
        yield from well_formed("format", format["schema"])
        if format.get("strict"):
            yield from openai_strict("format", format["schema"])

    def messages_format(self, body):
        format = body.get("output_config", body).get("format") or body.get("output_format")
        if format is None:
            return
        yield from well_formed("format", format["schema"])
        # The client moves the keywords that the API does not take into descriptions. It also moves defaults, and drops the
        # type beside an enum; the API takes both ("Structured outputs", platform.claude.com, 2026-11).
        try:
            theirs = dict(nodes(self.anthropic_transform(format["schema"])))
        except ValueError as error:
            yield f"format: {error}"
            return
        for place, node in nodes(format["schema"]):
            kept = theirs.get(place, {}).keys() | {"default", "type"}
            for keyword in node.keys() - kept:
                yield f"format{place}: keyword {keyword}"

    def gemini_format(self, body):
        schema = body["generationConfig"].get("responseJsonSchema")
        if schema is None:
            return
        yield from well_formed("format", schema)
        for place, node in nodes(schema):
            for keyword in set(node) - self.gemini_keywords:
                yield f"format{place}: keyword {keyword}"


def openai_strict(name, schema):
    """"Structured outputs", supported schemas, platform.openai.com, 2026-11; `default` is refused on Azure."""
    if schema.get("type") != "object" or "anyOf" in schema:
        yield f"{name}: strict: the root is not an object"
    for place, node in nodes(schema):
        for keyword in {"allOf", "not", "dependentRequired", "dependentSchemas", "if", "then", "else", "oneOf", "default"} & set(node):
            yield f"{name}{place}: strict: keyword {keyword}"
        if not {"type", "anyOf", "$ref", "enum", "const"} & set(node):
            yield f"{name}{place}: strict: schema must have a 'type' key"
        if node.get("type") == "object":
            if node.get("additionalProperties") is not False:
                yield f"{name}{place}: strict: additionalProperties"
            if set(node.get("required", [])) != set(node.get("properties", {})):
                yield f"{name}{place}: strict: not every property is required"
        if node.get("type") == "array" and "items" not in node:
            yield f"{name}{place}: strict: array schema missing items"


def name_fits(name, pattern):
    if not re.fullmatch(pattern, name):
        yield f"{name!r}: name"


def well_formed(name, schema):
    if schema.get("type") != "object":
        yield f"{name}: the root is not an object"
    try:
        Draft202012Validator.check_schema(schema)
    except Exception as error:
        yield f"{name}: {str(error)[:200]}"


def nodes(schema, place=""):
    """Every schema below a schema, with its place."""
    if not isinstance(schema, dict):
        return
    yield place, schema
    for keyword in ("properties", "$defs", "definitions", "patternProperties"):
        for key, inner in schema.get(keyword, {}).items():
            yield from nodes(inner, f"{place}/{keyword}/{key}")
    for keyword in ("items", "additionalProperties", "not", "if", "then", "else"):
        yield from nodes(schema.get(keyword), f"{place}/{keyword}")
    for keyword in ("anyOf", "oneOf", "allOf", "prefixItems"):
        for i, inner in enumerate(schema.get(keyword, [])):
            yield from nodes(inner, f"{place}/{keyword}/{i}")


def judge(requests):
    judges, counts, invalid = Judges(), Counter(), Counter()
    examples = {}
    with open(requests) as lines:
        for line in map(json.loads, lines):
            column = (line["wire"], line["kind"])
            counts[column] += 1
            problems = list(judges.judge(line))
            invalid[column] += bool(problems)
            for problem in problems:
                # One example for each kind of problem.
                kind = (*column, problem.split(": ", 1)[-1][:40])
                examples.setdefault(kind, f"{line['case']}: {problem}")
    for column, count in sorted(counts.items()):
        print(f"{column[0]:<12}{column[1]:<8}{count:>6} requests, {invalid[column]} invalid")
    for (wire, kind, _), example in sorted(examples.items())[:60]:
        print(f"  {wire}, {kind}: {example}")
    return 1 if any(invalid.values()) else 0


if __name__ == "__main__":
    if sys.argv[1] == "cases":
        cases(sys.argv[2], sys.argv[3])
    else:
        sys.exit(judge(sys.argv[2]))
