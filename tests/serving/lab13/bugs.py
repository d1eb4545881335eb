"""Mistakes that lab 13's checks name without a list, or in its transfer exercise, and right answers in other words."""

PAIRS = "new * past + new * (new + 1) // 2"
HELD = "held = [n for n in range(len(stop)) if text.endswith(stop[:n])]\n            end = len(text) - max(held)"
REJECTED = "uniform[i] * q[i, token] >= p[i, token]"
TOKENS = "sum(alpha**i for i in range(k + 1))"
COPY = "if more[0] and length % size and references[table[-1]] > 1:"
BUGS = [
    ("step_cost", "swapped", [("return flops, 2 * parameters + 2 * numbers * batch * (past + new)",
     "return 2 * parameters + 2 * numbers * batch * (past + new), flops")], "wrong order"),
    ("block_tables", "no True", [("        return True\n", "")], "return True or False"),
    ("next_step", "changes its argument", [("list(waiting)", "waiting")], "must not change its arguments"),
    ("stream_text", "strict", [(', errors="ignore"', "")], "may end inside a character"),
    ("best_speculation", "closed form", [(TOKENS, "(1 - alpha**(k + 1)) / (1 - alpha)")], "has no value for alpha = 1"),
    ("conversation_tree", "no copy", [(COPY, "if False:")], "copy it first"),
    ("conversation_tree", "always", [(" and references[table[-1]] > 1", "")], "nobody else has it"),
    ("conversation_tree", "full block", [(" and length % size", "")], "full block is copied|no last block"),
    ("conversation_tree", "reference stays", [("                drop(old)\n", "")], "keeps the reference"),
    ("conversation_tree", "one list", [("list(tables[more[0]])", "tables[more[0]]")], "one list"),
    ("conversation_tree", "backwards", [("(old, table[-1])", "(table[-1], old)")], "the old block first"),
    ("conversation_tree", "zeros", [("        if references[block] == 0:\n            del references[block]\n", "")],
     "are not in use"),
]  # fmt: skip
DIFFERENT = [
    ("step_cost", [(PAIRS, "sum(past + i + 1 for i in range(new))")]),
    ("step_cost", [("2 * parameters + 2 * numbers * batch * (past + new)", "2 * (parameters + numbers * batch * past "
     "+ numbers * batch * new)")]),
    ("attend_cached", [("torch.einsum(\"hd,hld->hl\", q, keys)", "(keys @ q[:, :, None])[..., 0]"),
     ("torch.einsum(\"hl,hld->hd\", scores.softmax(dim=1), values)", "(scores.softmax(-1)[:, None] @ values)[:, 0]")]),
    ("attend_cached", [("    keys = k[:, : length + 1].repeat_interleave(group, dim=0)\n",
     "    keys = torch.stack([k[h // group, : length + 1] for h in range(len(w_q))])\n")]),
    ("users_that_fit", [("-(-length // size)", "((length + size - 1) // size)"), ("2 * 2 *", "4 *")]),
    ("users_that_fit", [("left // (per_position * size)", "left // per_position // size"),
     ("return per_position, reserved, ", "return [per_position, reserved, "),
     ("(-length // size)", "(-length // size)]")]),
    ("block_tables", [("free[: max(lacking, 0)]", "sorted(free)[: max(0, lacking)]"), ("-(-positions // size)",
     "(positions + size - 1) // size")]),
    ("block_tables", [("list(tables[request])", "tables[request].copy()"), ("tables.pop(request)",
     "tables.pop(request)[::-1]")]),
    ("paged_attention", [("cache[tables].transpose(1, 2).flatten(2, 3)",
     "cache.transpose(0, 1)[:, tables].transpose(0, 1).flatten(2, 3)")]),
    ("paged_attention", [("scores.masked_fill(beyond[:, None], -torch.inf)",
     "torch.where(beyond[:, None], float('-inf'), scores)"), ("dim=2)", "dim=-1)")]),
    ("next_step", [("[request for request in running if request[2] > 0]", "[one for one in running if one[2]]"),
     ("used + waiting[0][1] <= capacity", "capacity - used >= waiting[0][1]")]),
    ("next_step", [("return [(name, positions, left - 1) for name, positions, left in running], waiting",
     "return tuple([*one[:2], one[2] - 1] for one in running), tuple(waiting)")]),
    ("chunked_passes", [("while computed != list(prompts):", "while sum(computed) < sum(prompts):")]),
    ("chunked_passes", [("            if stop > start:\n", "            if start < length and left > 0:\n"),
     ("min(length, computed[number] + left)", "computed[number] + min(length - computed[number], left)")]),
    ("stream_text", [(HELD, "held = len(stop) - 1\n            while not text.endswith(stop[:held]):\n"
     "                held -= 1\n            end = len(text) - held")]),
    ("stream_text", [("end = text.find(stop)\n        if end < 0:", "end = text.index(stop) if stop in text else None\n"
     "        if end is None:"), ("return [*texts, ", "return tuple(texts) + ("), ("text[sent:]]", "text[sent:],)")]),
    ("verify", [(REJECTED, "uniform[i] >= min(1.0, float(p[i, token] / q[i, token]))"), ("[*tokens, draw((p",
     "tokens + [draw((p")]),
    ("verify", [("(p[i] - q[i]).clamp(min=0)", "(p[i] - q[i]).relu() / (p[i] - q[i]).relu().sum()")]),
    ("best_speculation", [(TOKENS,
     "k + 1 if alpha == 1 else (1 - alpha**(k + 1)) / (1 - alpha)")]),
    ("best_speculation", [("tokens / (k * cost + 1)", "1 / ((1 + cost * k) / tokens)"), ("    return best\n",
     "    return list(best)\n")]),
    ("conversation_tree", [("next(number for number in range(len(references) + 1) if number not in references)",
     "min(set(range(len(references) + 1)) - set(references))")]),
    ("conversation_tree", [("while len(table) * size < lengths[name]:",
     "for _ in range(-(-lengths[name] // size) - len(table)):")]),
]  # fmt: skip
