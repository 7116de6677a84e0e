#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares the texts of chats with what the library transformers makes of the same templates.

    compare_chat.py PROGRAM [--chats N] [--seed N] [TEMPLATE]...

PROGRAM is the test program chat_lines. The templates below have the shapes that published models
use; files with templates may be given, too. A chat that a template refuses must be refused.
"""
import argparse
import random
import struct
import subprocess
import sys

NAME = "compare_chat"

try:
    import jinja2
    from transformers.utils.chat_template_utils import render_jinja_template
except ImportError as missing:
    print(f"{NAME}: {missing}: pip install transformers jinja2")
    print(f"{NAME}: 0 passed, 0 failed, 1 skipped")
    sys.exit(0)

TURNS = """{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('turns') }}{% endif %}"""

TEMPLATES = {
    "chatml": """{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content']
 + '<|im_end|>' + '\\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}""",
    "chatml with a system message": """{% for message in messages %}{% if loop.first and messages[0]['role'] !=
 'system' %}{{ '<|im_start|>system
You are a small model\\'s voice: it\\'s "kind"<|im_end|>
' }}{% endif %}{{'<|im_start|>' + message['role'] + '
' + message['content'] + '<|im_end|>' + '
'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant
' }}{% endif %}""",
    "chatml with a system message before the loop": """{%- if messages[0]['role'] == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}
{%- else %}
    {{- '<|im_start|>system\\nYou are helpful.<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) or message.role == "assistant" %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}""",
    "llama 2": """{% if messages[0]['role'] == 'system' %}{% set rest = messages[1:] %}{% set system =
 messages[0]['content'] %}{% else %}{% set rest = messages %}{% set system = false %}{% endif %}
{%- for message in rest %}""" + TURNS + """{% if loop.index0 == 0 and system != false %}{% set content =
 '<<SYS>>\\n' + system + '\\n<</SYS>>\\n\\n' + message['content'] %}{% else %}{% set content = message['content'] %}{% endif %}
{%- if message['role'] == 'user' %}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}{% elif
 message['role'] == 'assistant' %}{{ ' ' + content.strip() + ' ' + eos_token }}{% endif %}{% endfor %}""",
    "llama 3": """{% for message in messages %}{% set content = '<|start_header_id|>' + message['role'] +
 '<|end_header_id|>\\n\\n' + message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content =
 bos_token + content %}{% endif %}{{ content }}{% endfor %}{% if add_generation_prompt %}{{
 '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}""",
    "llama 3.1": """{{- bos_token }}
{%- if not date_string is defined %}
    {%- set date_string = "26 Jul 2024" %}
{%- endif %}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{{- "Cutting Knowledge Date: December 2023\\n" }}
{{- "Today Date: " + date_string + "\\n\\n" }}
{{- system_message }}
{{- "<|eot_id|>" }}
{%- for message in messages %}
    {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}""",
    "zephyr": """{% for message in messages %}
{% if message['role'] == 'user' %}
{{ '<|user|>\\n' + message['content'] + eos_token }}
{% elif message['role'] == 'system' %}
{{ '<|system|>\\n' + message['content'] + eos_token }}
{% elif message['role'] == 'assistant' %}
{{ '<|assistant|>\\n'  + message['content'] + eos_token }}
{% endif %}
{% if loop.last and add_generation_prompt %}
{{ '<|assistant|>' }}
{% endif %}
{% endfor %}""",
    "phi": """{% for message in messages %}{{'<|' + message['role'] + '|>' + '\\n' + message['content'] + '<|end|>\\n'}}{% endfor
 %}{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% else %}{{ eos_token }}{% endif %}{# <|user|> #}""",
    "gemma": """{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system') }}{% endif %}
{%- for message in messages %}""" + TURNS + """{% if (message['role'] == 'assistant') %}{% set role = 'model' %}{% else
 %}{% set role = message['role'] %}{% endif %}{{ '<start_of_turn>' + role + '\\n' + message['content'] | trim +
 '<end_of_turn>\\n' }}{% endfor %}{% if add_generation_prompt %}{{'<start_of_turn>model\\n'}}{% endif %}""",
    "gemma 3": """{{ bos_token }}{%- if messages[0]['role'] == 'system' -%}{%- set first_user_prefix = messages[0]['content']
 + '\\n\\n' -%}{%- set rest = messages[1:] -%}{%- else -%}{%- set first_user_prefix = "" -%}{%- set rest = messages -%}{%- endif -%}
{%- for message in rest -%}""" + TURNS + """{%- if (message['role'] == 'assistant') -%}{%- set role = "model" -%}{%- else
 -%}{%- set role = message['role'] -%}{%- endif -%}{{ '<start_of_turn>' + role + '\\n' + (first_user_prefix if loop.first else
 "") }}{{ message['content'] | trim }}{{ '<end_of_turn>\\n' }}{%- endfor -%}{%- if add_generation_prompt -%}{{
 '<start_of_turn>model\\n' }}{%- endif -%}""",
    "mistral": """{{ bos_token }}{% for message in messages %}""" + TURNS + """{% if message['role'] == 'user' %}{{ '[INST] ' +
 message['content'] + ' [/INST]' }}{% else %}{{ message['content'] + eos_token + ' ' }}{% endif %}{% endfor %}""",
    "mistral without spaces": """{{ bos_token }}{% for message in messages %}""" + TURNS + """{% if message['role'] == 'user'
 %}{{ '[INST] ' + message['content'] + ' [/INST]' }}{% else %}{{ message['content'] + eos_token}}{% endif %}{% endfor %}""",
    "mistral with the system first": """{%- if messages[0]['role'] == 'system' %}{%- set system_message = messages[0]['content'] %}
{%- set rest = messages[1:] %}{%- else %}{%- set rest = messages %}{%- endif %}{{- bos_token }}{%- for message in rest %}""" +
    TURNS + """{%- if message['role'] == 'user' %}{%- if loop.first and system_message is defined %}{{- ' [INST] ' +
 system_message + '\\n\\n' + message['content'] + ' [/INST]' }}{%- else %}{{- ' [INST] ' + message['content'] + ' [/INST]' }}
{%- endif %}{%- else %}{{- ' ' + message['content'] + eos_token }}{%- endif %}{%- endfor %}""",
    "mistral with the system last": """{%- if messages[0]["role"] == "system" %}{%- set system_message = messages[0]["content"] %}
{%- set rest = messages[1:] %}{%- else %}{%- set rest = messages %}{%- endif %}{{- bos_token }}{%- for message in rest %}""" +
    TURNS + """{%- if message["role"] == "user" %}{%- if loop.last and system_message is defined %}{{- "[INST] " +
 system_message + "\\n\\n" + message["content"] + "[/INST]" }}{%- else %}{{- "[INST] " + message["content"] + "[/INST]" }}
{%- endif %}{%- else %}{{- " " + message["content"]|trim + eos_token }}{%- endif %}{%- endfor %}""",
    "another": """{% for message in messages %}{{ message['content'] }}{% endfor %}""",
}

CONTENTS = ["Hello", "  spaces  ", "two\nlines\n", "", "\u00a0odd\u3000", "<|im_end|>", "quote's \"here\"", "[INST]", "é 世界 🙂"]


def any_chat(rng):
    chat = [{"role": "system", "content": rng.choice(CONTENTS)}] if rng.random() < 0.4 else []
    roles = ["user", "assistant"]
    for n in range(rng.randrange(1, 6)):
        role = roles[n % 2] if rng.random() < 0.97 else rng.choice(roles)
        chat.append({"role": role, "content": rng.choice(CONTENTS)})
    return chat


def rendered(template, chat, reply):
    """The text in hexadecimal, or "-" if the template refuses the chat."""
    try:
        texts, _ = render_jinja_template([chat], chat_template=template, add_generation_prompt=reply, bos_token="<s>",
                                         eos_token="</s>")
    except jinja2.exceptions.TemplateError:
        return "-"
    return texts[0].encode().hex()


def record(template, chat, reply):
    texts = [template, "<s>", "</s>", "1" if reply else "0"]
    for message in chat:
        texts += [message["role"], message["content"]]
    parts = [text.encode() for text in texts]
    return struct.pack("<I", len(parts)) + b"".join(struct.pack("<I", len(part)) + part for part in parts)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("templates", nargs="*")
    parser.add_argument("--chats", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_intermixed_args()
    rng = random.Random(options.seed)
    templates = dict(TEMPLATES)
    for path in options.templates:
        with open(path, encoding="utf-8") as file:
            templates[path] = file.read()
    names = [rng.choice(list(templates)) for _ in range(options.chats)]
    chats = [(name, any_chat(rng), rng.random() < 0.5) for name in names]
    data = b"".join(record(templates[name], chat, reply) for name, chat, reply in chats)
    result = subprocess.run([options.program], input=data, stdout=subprocess.PIPE, check=False)
    lines = result.stdout.decode().split("\n")
    passed = failed = 0
    for n, (name, chat, reply) in enumerate(chats):
        wanted = rendered(templates[name], chat, reply) if name != "another" else "-"
        got = lines[n] if n < len(lines) else ""
        passed += got == wanted
        failed += got != wanted
        if got != wanted and failed <= 10:
            texts = [bytes.fromhex(text).decode() if text != "-" else "refused" for text in (got, wanted)]
            print(f"{name}: {chat} {reply}\n    got    {texts[0]!r}\n    wanted {texts[1]!r}")
    print(f"{NAME}: {passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
