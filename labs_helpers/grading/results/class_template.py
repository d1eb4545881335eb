"""The HTML template of a class's page."""

from __future__ import annotations

from labs_helpers.grading.results.pages import template

PAGE = template(
    """
  .tiles { display: flex; flex-wrap: wrap; gap: .6rem; padding: 0; list-style: none; }
  .tiles li { background: var(--card); padding: .4rem .9rem; } .tiles b { font-size: 1.3rem; font-weight: 600; }
  .histogram { max-width: 44rem; } .histogram td { border: 0; padding-block: .1rem; } .histogram svg { width: 100%;
    height: .9rem; display: block; } .histogram rect { fill: var(--bar); } .histogram td:last-child { width: 80%; }
  .share { display: inline-block; width: 5rem; height: .5rem; } .share rect { fill: var(--bar); }
  .share .rest { fill: var(--rule); }
  ol, ul.plain { margin: 0; padding-left: 1.2rem; } ul.plain { list-style: none; padding: 0; }
  .grades table { min-width: 46rem; } td:first-child { min-width: 6.5rem; }
  @media (max-width: 40rem) { .share { display: none; } }
  tr { break-inside: avoid; } .joined td { border: 0; padding-bottom: 0; }
  th { overflow-wrap: normal; } .number { white-space: nowrap; } h3 { font-size: 1rem; margin: 1rem 0 .2rem; }
  nav a { margin-right: 1rem; }
""",
    """{% macro to(student) -%}
{% if student in with_page %}<a href="{{ link(student) }}">{{ student | plain(60) }}</a>
{%- else %}{{ student | plain(60) }}{% endif %}
{%- endmacro %}
<title>Lab {{ lab.number }}: the class</title>
<header>
<p class="faint">Tile to Cluster, lab {{ lab.number }}: {{ lab.title }}</p>
<h1>The class</h1>
<ul class="tiles">
{% for status, count in counts %}
<li><b>{{ count }}</b> {{ status }}</li>
{% endfor %}
</ul>
<nav>
{% for file in files %}
<a href="{{ file }}">{{ file }}</a>
{% endfor %}
</nav>
</header>

<h2>Points</h2>
{% if there %}
<p>Of {{ there }} students: mean {{ mean | number }}, median {{ median | number }} of {{ most | number }} points.
Exercises that have no points yet count as 0. Left out are those who are missing or not in the class list, and files
that could not be read, unless you gave them points.</p>
<table class="histogram"><caption>Students by points, after what is taken off for late days</caption>
{% for start, count, percent in bars %}
<tr><td class="points">from {{ start | number }}</td><td class="points">{{ count }}</td>
<td><svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
<rect width="{{ "%.1f" | format(percent) }}" height="8"/></svg></td></tr>
{% endfor %}
</table>
{% else %}
<p>Nobody has points yet.</p>
{% endif %}

<h2>Exercises</h2>
<div class="wide"><table>
<tr><th>Exercise</th><th class="points">Right</th><th class="points">Mean points</th>
<th class="points">Not attempted</th></tr>
{% for one in exercises %}
<tr class="joined"><td>{{ one.id }} {{ one.title | plain }}</td>
<td class="points"><svg class="share" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
<rect class="rest" width="100" height="8"/><rect width="{{ "%.1f" | format(100 * one.share) }}" height="8"/></svg>
{{ "%.0f" | format(100 * one.share) }} %</td>
<td class="points">{{ one.mean | number if one.mean is not none else "–" }} of {{ one.most | number }}</td>
<td class="points">{{ one.open }}</td></tr>
<tr><td colspan="4"><ul class="plain">
{% for words, count in one.reasons %}
<li>{{ count }} × <span class="wrong">✗</span> {{ words | plain(200) }}</li>
{% endfor %}
{% if one.waiting %}
<li class="faint">{{ one.waiting }} {{ "have" if one.waiting > 1 else "has" }} no points yet.</li>
{% endif %}
</ul></td></tr>
{% endfor %}
</table></div>

<h2>Students</h2>
<div class="wide grades"><table>
<tr><th>Student</th><th>Name</th><th>Status</th>
{% for one in exercises %}
<th class="points">{{ one.id }}</th>
{% endfor %}
<th class="points">Days late</th><th class="points">Total</th></tr>
{% for record, total, points in students %}
<tr><td>{{ to(record.student) }}</td>
<td>{{ names.get(record.student, "") | plain(60) }}</td><td>{{ record.status }}</td>
{% for shown, look in points %}
<td class="points {{ look }}">{{ shown }}</td>
{% endfor %}
<td class="points">{{ record.late_days or "" }}</td>
<td class="points">{% if record.marks %}{{ total | number }}{% else %}–{% endif %}</td></tr>
{% endfor %}
</table></div>

<h2>What needs a look</h2>
{% if looks %}
<div class="wide"><table>
<tr><th>Student</th><th>Exercise</th><th>What</th></tr>
{% for student, exercise, what in looks %}
<tr><td>{{ to(student) }}</td><td class="number">{{ exercise | plain(20) }}</td>
<td>{{ what | plain(600) }}</td></tr>
{% endfor %}
</table></div>
{% if more_looks %}
<p>and {{ more_looks }} more, which are in <a href="review.csv">review.csv</a>.</p>
{% endif %}
{% else %}
<p>Nothing.</p>
{% endif %}

<h2>Answers that are alike</h2>
{% if alike %}
<p>After names, comments and annotations are taken away, and without the course's own answers. How that came about is
not said by this: two may have worked together, or both have used the same text. What many have, and what is short,
people come to by themselves.</p>
{% if pairs %}
<h3>Pairs with several of the same answers</h3>
<div class="wide"><table>
<tr><th>Students</th><th class="points">The same</th><th class="points">of both</th>
<th class="points">Nobody else's</th><th>Exercises</th></tr>
{% for pair in pairs %}
<tr><td>{{ to(pair.one) }}, {{ to(pair.other) }}</td><td class="points">{{ pair.exercises | length }}</td>
<td class="points">{{ pair.both }}</td><td class="points">{{ pair.alone }}</td>
<td>{{ pair.exercises | join(", ") | plain(200) }}</td></tr>
{% endfor %}
</table></div>
{% if more_pairs %}
<p>and {{ more_pairs }} more.</p>
{% endif %}
{% endif %}
<h3>By exercise</h3>
<div class="wide"><table>
<tr><th>Exercise</th><th class="points">Students</th><th>Who</th><th>What is alike</th></tr>
{% for one in alike %}
<tr><td class="number">{{ one.exercise | plain(20) }}</td><td class="points">{{ one.students | length }}</td>
<td>{% for student in one.students[:most_named] %}{{ to(student) }}{{ "" if loop.last else ", " }}{% endfor %}
{% if one.students | length > most_named %} and {{ one.students | length - most_named }} more{% endif %}</td>
<td>{{ one.words }}</td></tr>
{% endfor %}
</table></div>
{% if more_alike %}
<p>and {{ more_alike }} more.</p>
{% endif %}
{% else %}
<p>None but the course's own.</p>
{% endif %}
</html>
""",
)
