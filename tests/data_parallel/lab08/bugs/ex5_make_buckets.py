"""Exercise 5 of lab 08: mistakes that its check has to name, and right answers written differently."""

NAME = "make_buckets"
SORT = "    return sorted(buckets, key=lambda bucket: arrival[bucket[-1]])\n"
FITS = "parameter.nbytes > room[kind]"
LIMIT = "bucket_bytes if buckets else first_bytes"

BUGS: list = [
    (
        "make_buckets",
        "one list for all calls",
        [
            ("def make_buckets(", "KEPT = []\n\n\ndef make_buckets("),
            ("    return sorted(", "    KEPT[:] = sorted("),
            ("arrival[bucket[-1]])\n", "arrival[bucket[-1]])\n    return KEPT\n"),
        ],
        "has changed the buckets that an earlier call returned",
    ),
    (
        NAME,
        "the model's order",
        [("enumerate(reversed(parameters))", "enumerate(parameters)")],
        "the buckets are filled in the model's order",
    ),
    (NAME, "not to the last byte", [(FITS, "parameter.nbytes >= room[kind]")], "last byte still fits"),
    (NAME, "elements", [("parameter.nbytes", "parameter.numel()")], "counted in elements, not in bytes"),
    (
        NAME,
        "ends with the dtype",
        [
            (
                "        kind = parameter.dtype\n",
                "        kind = parameter.dtype\n        filling = {kind: filling[kind]} if kind in filling else {}\n",
            )
        ],
        "a bucket is closed when the dtype changes",
    ),
    (
        NAME,
        "by first arrival",
        [("arrival[bucket[-1]]", "arrival[bucket[0]]")],
        "in the order of opening",
    ),
    (
        NAME,
        "compared by value",
        [
            (
                "    buckets, filling",
                (
                    "    if any(p in parameters[:i] for i, p in enumerate(parameters)):\n        "
                    "return []\n    buckets, filling"
                ),
            )
        ],
        "id\\(parameter\\)",
    ),
    (
        NAME,
        "the list is turned",
        [
            ("enumerate(reversed(parameters))", "enumerate(parameters)"),
            ("    buckets, filling", "    parameters.reverse()\n    buckets, filling"),
        ],
        "must not change its arguments",
    ),
    (NAME, "a generator", [(SORT, "    return (b for b in buckets)\n")], "a list of lists of parameters"),
    (
        NAME,
        "a large one is set apart",
        [
            (
                "        kind = parameter.dtype\n",
                (
                    "        kind, arrival[parameter] = parameter.dtype, place\n"
                    "        if kind in filling and parameter.nbytes > bucket_bytes:\n"
                    "            buckets.append([parameter])\n            continue\n"
                ),
            )
        ],
        "the bucket before it is filled further",
    ),
    (
        NAME,
        "one room",
        [
            ("filling[kind], room[kind] = [], " + LIMIT, "filling[kind], room[0] = [], " + LIMIT),
            ("parameter.nbytes > room[kind]", "parameter.nbytes > room[0]"),
            ("room[kind] -= parameter", "room[0] -= parameter"),
        ],
        "all dtypes share one count of bytes",
    ),
    (
        NAME,
        "the open ones are forgotten",
        [
            ("    buckets, filling,", "    done = []\n    buckets, filling,"),
            (
                "            filling[kind], room[kind] =",
                (
                    "            if kind in filling:\n                done.append(filling[kind])\n"
                    "            filling[kind], room[kind] ="
                ),
            ),
            (SORT, "    return done\n"),
        ],
        "open at the end",
    ),
]
DIFFERENT: list = [
    (
        NAME,
        [
            (
                "    buckets, filling, room, arrival = [], {}, {}, {}\n",
                (
                    "    from collections import defaultdict\n    done, filling = [], "
                    "defaultdict(list)\n    limit = {}\n    first = True\n"
                ),
            ),
            (
                "    for place, parameter in enumerate(reversed(parameters)):\n",
                "    for place, parameter in enumerate(parameters[::-1]):\n",
            ),
            (
                (
                    "        kind = parameter.dtype\n        if kind not in filling or "
                    "parameter.nbytes > room[kind]:\n            filling[kind], room[kind] = [], "
                    "bucket_bytes if buckets else first_bytes\n            buckets.append(filling[kind])\n"
                ),
                (
                    "        kind = parameter.dtype\n        held = sum(p.nbytes for _, p in "
                    "filling[kind])\n        if not held or held + parameter.nbytes > "
                    "limit[kind]:\n            if held:\n                "
                    "done.append(filling.pop(kind))\n            limit[kind] = first_bytes if "
                    "first else bucket_bytes\n            first = False\n"
                ),
            ),
            (
                (
                    "        filling[kind].append(parameter)\n        room[kind] -= "
                    "parameter.nbytes\n        arrival[parameter] = place\n"
                ),
                "        filling[kind].append((place, parameter))\n",
            ),
            (
                SORT,
                (
                    "    done += [some for some in filling.values() if some]\n    "
                    "done.sort(key=lambda some: some[-1][0])\n    return [[p for _, p in some] for some in done]\n"
                ),
            ),
        ],
    ),
    (
        NAME,
        [
            ("arrival[parameter] = place", "arrival[id(parameter)] = place"),
            ("arrival[bucket[-1]]", "arrival[id(bucket[-1])]"),
            ("parameter.nbytes", "parameter.numel() * parameter.element_size()"),
        ],
    ),
    (
        NAME,
        [
            (FITS, "room[kind] - parameter.nbytes < 0"),
            (SORT, "    return [tuple(b) for b in sorted(buckets, key=lambda bucket: arrival[bucket[-1]])]\n"),
        ],
    ),
]
