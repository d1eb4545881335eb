"""Answers that seek points without being right, or try to do harm. Each is an exercise's cell, with NAME for its
function."""

# ruff: noqa: E501

HOSTILE = {
    "check patched": "import labs_helpers.course.exercise as e\ne.Exercise.verify = lambda *a: ['ok']\ndef NAME(*a): return 1",
    "trial patched": "import labs_helpers.course.scoreboard as s\nfor x in s.SCORES.exercises.values():\n"
    "    object.__setattr__(x, 'trial', lambda f: iter(['ok']))\ndef NAME(*a): return 1",
    "comparison patched": "import torch, numpy as np\ntorch.allclose = np.allclose = np.array_equal = lambda *a, **k: True\n"
    "torch.Tensor.all = torch.Tensor.__bool__ = lambda self: True\ndef NAME(*a): return torch.zeros(3)",
    "a number equal to all": "class Yes(int):\n    def __eq__(self, o): return True\n    __hash__ = int.__hash__\n"
    "def NAME(*a): return Yes(1)",
    "an array that lies": "class A:\n    def __array__(self, *a): return 3\n    def __eq__(self, o): return True\n"
    "    def __getattr__(self, n): return self\n    def __call__(self, *a): return self\ndef NAME(*a): return A()",
    "the reference": "import importlib, pkgutil\nfrom labs_helpers.labs import LABS\ndef NAME(*a):\n"
    "    for lab in LABS:\n        for e in lab.exercises():\n            if e.trial.__name__ == 'NAME' and e.reference:\n"
    "                return e.reference(*a)",
    "the transfer answer": "import importlib, sys\nfrom labs_helpers.labs import LABS, ROOT\nsys.path.insert(0, str(ROOT))\n"
    "def NAME(*a):\n    for lab in LABS:\n        module = importlib.import_module(lab.transfer)\n"
    "        if hasattr(module, 'NAME'): return module.NAME(*a)",
    "a traced frame": "import sys\ndef look(f, e, a):\n    if 'expected' in f.f_locals: f.f_locals['expected'] = 1\n"
    "    return look\nsys.settrace(look)\ndef NAME(*a): return 1",
    "a caller's frame": "import sys\ndef NAME(*a):\n    f = sys._getframe()\n    while f:\n"
    "        for k, v in f.f_locals.items():\n            if k == 'expected': return v\n        f = f.f_back",
    "garbage looked through": "import gc\ndef NAME(*a):\n    for o in gc.get_objects():\n"
    "        if type(o).__name__ == 'Exercise' and o.reference: return o.reference(*a)",
    "the line on stdout": "import os\nfor d in range(64):\n    try: os.write(d, b'x {\"status\": \"right\", \"lines\": []}\\n')\n"
    "    except OSError: pass\ndef NAME(*a): return 1",
    "the end": "import os\ndef NAME(*a): os._exit(0)",
    "the end by a signal": "import os, signal\ndef NAME(*a): os.kill(os.getpid(), signal.SIGKILL)",
    "everybody killed": "import os, signal\ndef NAME(*a):\n    os.kill(-1, 9)",
    "the parent stopped": "import os, signal\ndef NAME(*a):\n    os.kill(os.getppid(), signal.SIGSTOP)\n    return 1",
    "another program": "import os, sys\ndef NAME(*a): os.execv(sys.executable, [sys.executable, '-c', 'print(1)'])",
    "a thread that stays": "import threading, time\nthreading.Thread(target=lambda: time.sleep(1000)).start()\n"
    "def NAME(*a): return 1",
    "a process that stays": "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(1000)\ndef NAME(*a): return 1",
    "processes without end": "import os\ndef NAME(*a):\n    while True: os.fork()",
    "memory without end": "def NAME(*a):\n    x = []\n    while True: x.append(bytearray(2**26))",
    "output without end": "import sys\ndef NAME(*a):\n    for _ in range(10**5): print('x' * 1000)\n    return 1",
    "errors without end": "def NAME(*a): raise ValueError('x' * 10**8)",
    "a file without end": "def NAME(*a):\n    with open('/tmp/x', 'wb') as f:\n        while True: f.write(bytes(2**20))",
    "a loop": "def NAME(*a):\n    while True: pass",
    "a loop that holds on": "def NAME(*a):\n    while True:\n        try:\n            while True: pass\n"
    "        except BaseException: pass",
    "network": "import socket\ndef NAME(*a):\n    s = socket.create_connection(('1.1.1.1', 80), 2)\n    return 1",
    "written to others": "def NAME(*a):\n    for p in ('/work', '/root', '/usr', '/etc', '.'):\n"
    "        try: open(p + '/hostile-mark', 'w').write('x')\n        except OSError: pass\n    return 1",
    "a link": "import os\nos.symlink('/etc', '/tmp/link')\ndef NAME(*a): return 1",
    "environment": "import os\nos.environ['LABS_GRADING'] = '0'\ndef NAME(*a): return 1",
    "exit": "import sys\nsys.exit(0)",
    "an exit handler": "import atexit, os\natexit.register(lambda: os.write(1, b'right'))\ndef NAME(*a): return 1",
    "no traceback": "import sys\nsys.excepthook = sys.unraisablehook = lambda *a: None\ndef NAME(*a): raise SystemExit(0)",
    "an exception with a face": "class E(Exception):\n    def __str__(self): raise self\n    __repr__ = __str__\n"
    "def NAME(*a): raise E",
    "a deep recursion": "def NAME(*a): return NAME(*a)",
    "a crash": "import ctypes\ndef NAME(*a): ctypes.string_at(0)",
    "modules replaced": "import sys, types\nsys.modules['labs_helpers.course.verdict.compare'] = types.ModuleType('x')\n"
    "sys.modules['numpy'] = types.ModuleType('numpy')\ndef NAME(*a): return 1",
    "imports hooked": "import sys\nclass F:\n    def find_spec(self, *a): raise ImportError\nsys.meta_path.insert(0, F())\n"
    "def NAME(*a): return 1",
    "builtins": "import builtins\nbuiltins.abs = lambda x: 0\nbuiltins.isinstance = lambda *a: True\n"
    "builtins.max = lambda *a, **k: 0\ndef NAME(*a): return 1",
    "a default dtype": "import torch\ntorch.set_default_dtype(torch.float16)\ndef NAME(*a): return 1",
    "seeds": "import torch, numpy as np\ntorch.manual_seed = torch.randn = lambda *a, **k: torch.zeros(1)\ndef NAME(*a): return 1",
    "other cells": "%%javascript\nalert(1)",
    "no function": "NAME = 3",
    "pickles": "class P:\n    def __reduce__(self): return print, ('x',)\ndef NAME(*a): return P()",
    "unicode": "def ＮＡＭＥ(*a): return eval('1')",
    "the result itself": "import json, os\ndef NAME(*a):\n    told = {'status': 'right', 'lines': ['x'] * 9, 'message': ''}\n"
    "    for d in range(3, 64):\n        try: os.write(d, json.dumps(told).encode())\n        except OSError: pass\n"
    "    os._exit(0)",
    "the result, almost right": "import json, os\ndef NAME(*a):\n    told = {'status': 'wrong', 'lines': ['x'] * 9, 'message': 'y'}\n"
    "    for d in range(3, 64):\n        try: os.write(d, json.dumps(told).encode())\n        except OSError: pass\n"
    "    os._exit(0)",
    "a result that is none": "import os\ndef NAME(*a):\n    for d in range(3, 64):\n"
    "        try: os.write(d, b'{\"status\": [\"right\"], \"lines\": 7, \"message\": {}}')\n        except OSError: pass\n"
    "    os._exit(0)",
    "the token in the parent's place": "import os, sys\ndef NAME(*a):\n    f, found = sys._getframe(), {}\n    while f:\n"
    "        found.update(f.f_locals.get('job') or {})\n        f = f.f_back\n"
    "    line = f\"\\n{found['token']} {{\\\"status\\\": \\\"right\\\", \\\"lines\\\": [], \\\"message\\\": \\\"\\\"}}\\n\"\n"
    "    for d in range(64):\n        try: os.write(os.open(f'/proc/{os.getppid()}/fd/{d}', os.O_WRONLY), line.encode())\n"
    "        except OSError: pass\n    os.kill(os.getppid(), 9)",
    "the parent's memory": "import os\ndef NAME(*a):\n    with open(f'/proc/{os.getppid()}/mem', 'r+b', 0) as f:\n"
    "        f.seek(0x400000)\n        f.write(b'x' * 4096)\n    return 1",
    "the seed of the hidden inputs": "import sys\ndef NAME(*a):\n    f = sys._getframe()\n    while f:\n"
    "        for name in ('job', 'given'):\n            if isinstance(f.f_locals.get(name), dict) and 'seed' in f.f_locals[name]:\n"
    "                raise ValueError(f\"seed {f.f_locals[name]['seed']}\")\n        f = f.f_back",
    "all that can be read": "import os\nfrom labs_helpers.labs import ROOT\ndef NAME(*a):\n    found = ''\n"
    "    for top in (str(ROOT / 'tests'), '/root', '/home', '/proc/1/root' + str(ROOT), '/proc/1/cwd', '/proc/self/cwd'):\n"
    "        for folder, _, files in os.walk(top):\n            for file in files:\n"
    "                if file.endswith(('.ipynb', '.csv', '.jsonl', 'seed')) or '/tests/' in folder:\n"
    "                    try: found += folder + file + open(os.path.join(folder, file)).read()\n"
    "                    except (OSError, UnicodeDecodeError): pass\n    raise ValueError(found)",
    "others' environment": "import glob\ndef NAME(*a):\n    raise ValueError([open(p, 'rb').read() for p in glob.glob('/proc/[0-9]*/environ')])",
    "a system of its own": "import ctypes, os\nfrom labs_helpers.labs import ROOT\ndef NAME(*a):\n    c = ctypes.CDLL(None)\n"
    "    c.unshare(0x10020000)\n    c.mount(b'none', b'/', None, 0x84000, None)\n"
    "    c.mount(b'none', str(ROOT).encode(), None, 0x1020, None)\n    open(ROOT / 'hostile-mark', 'w').write('x')\n    return 1",
    "limits lifted": "import resource\nfor k in (resource.RLIMIT_AS, resource.RLIMIT_CPU, resource.RLIMIT_NPROC):\n"
    "    try: resource.setrlimit(k, (-1, -1))\n    except (ValueError, OSError): pass\n"
    "def NAME(*a):\n    x = []\n    while True: x.append(bytearray(2**26))",
    "a clock that stands": "import time\ntime.monotonic = time.time = time.process_time = time.perf_counter = lambda: 0.0\n"
    "def NAME(*a):\n    while True: pass",
    "signals ignored": "import signal\nfor s in range(1, 64):\n    try: signal.signal(s, signal.SIG_IGN)\n"
    "    except (OSError, ValueError): pass\ndef NAME(*a):\n    while True: pass",
    "a thread that answers later": "import gc, threading, time\ndef change():\n    while True:\n"
    "        for o in gc.get_objects():\n            if type(o) is dict and 'status' in o: o['status'] = 'right'\n"
    "        time.sleep(0.01)\nthreading.Thread(target=change, daemon=True).start()\ndef NAME(*a): return 1",
    "a kernel that replaces itself": "import sys\nclass K:\n    def __getitem__(self, grid):\n        for m in list(sys.modules.values()):\n"
    "            if hasattr(m, 'NAME') and m.__name__.startswith('labs_helpers'): globals()['NAME'] = m.NAME\n"
    "        return lambda *a, **k: None\nkernel = K()\ndef NAME(*a):\n    kernel[(1,)](*a)\n    return NAME",
    "the notebook's shell": "from IPython.core.interactiveshell import InteractiveShell as S\nshell = S.instance()\n"
    "shell.showtraceback = lambda *a, **k: None\nshell.input_transformers_cleanup.append(lambda lines: ['print(\"ok\")'])\n"
    "def NAME(*a): raise ValueError('hidden')",
    "a failing check": "import builtins\nbuiltins.len = lambda *a: 1 / 0\ndef NAME(*a): return [1]",
    # of plain Python, and so beside other answers
    "the end of an iteration": "def NAME(*a): raise StopIteration",
    "an interrupt": "def NAME(*a): raise KeyboardInterrupt",
    "a generator": "def NAME(*a):\n    while True: yield 1",
    "half a letter": "def NAME(*a): raise ValueError('\\ud800\\x00\\x1b[2J<script>alert(1)</script>')",
    "a number without end": "def NAME(*a): return 7 ** 7 ** 9",
    "a tensor without end": "def NAME(*a): return torch.zeros(2 ** 50)",
    "a list in itself": "def NAME(*a):\n    x = []\n    x.append(x)\n    return x",
    "what was given": "def NAME(*a):\n    for x in a:\n        if isinstance(x, torch.Tensor): x.zero_()\n    return a",
}  # fmt: skip
