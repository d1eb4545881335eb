"""The HTML template of the feedback page."""

from __future__ import annotations

from labs_helpers.grading.results.pages import template

PAGE = template(
    """
  .total { font-size: 2rem; margin: .6rem 0 0; } .total small { font-size: 1rem; }
  section { border-top: 1px solid var(--rule); margin-top: 2rem; }
  h2 { display: flex; gap: 1rem; justify-content: space-between; margin-top: .8rem; }
  ul { list-style: none; padding: 0; margin: .4rem 0; } li { padding-left: 1.5rem; text-indent: -1.5rem; }
  li > b { display: inline-block; width: 1.5rem; text-indent: 0; font-weight: normal; }
  pre { font: .85rem/1.45 ui-monospace, monospace; background: var(--card); padding: .7rem .9rem; overflow: auto;
    tab-size: 4; margin: .5rem 0; }
  .said { white-space: pre-wrap; border-left: 3px solid var(--wrong); } .said strong { color: var(--wrong); }
  .code { counter-reset: line; } .code span::before { counter-increment: line; content: counter(line);
    display: inline-block; width: 2.2rem; padding-right: .8rem; text-align: right; color: var(--faint); }
  summary { cursor: pointer; color: var(--faint); margin-top: .6rem; }
  @media print { pre { white-space: pre-wrap; border: 1px solid var(--rule); font-size: 7.5pt; } }
""",
    """<title>Lab {{ lab.number }}: your grade</title>
<header>
<p class="faint">Tile to Cluster, lab {{ lab.number }}: {{ lab.title }}</p>
<h1>{{ name | plain(100) }}
{%- if name != student %} <span class="faint">{{ student | plain(100) }}</span>{% endif %}</h1>
{% if exercises %}
<p class="total">{{ total | number }} <small>of {{ most | number }} points</small></p>
{% endif %}
{% for line in lines %}
<p>{{ line | plain(4000) }}</p>
{% endfor %}
</header>
{% if exercises %}
<div class="wide"><table>
<tr><th>Exercise</th><th>Result</th><th class="points">Points</th></tr>
{% for one in exercises %}
<tr><td><a href="#{{ one.anchor }}">{{ one.title }}</a></td>
<td class="{{ one.look }}">{{ one.mark }} {{ one.result }}</td>
<td class="points">{{ one.points }} of {{ one.most | number }}</td></tr>
{% endfor %}
</table></div>
{% endif %}
{% for one in exercises %}
<section id="{{ one.anchor }}">
<h2><span>{{ one.title }}</span>
<span class="points {{ one.look }}">{{ one.points }} of {{ one.most | number }}</span></h2>
{% if one.note %}
<p>{{ one.note }}</p>
{% endif %}
{% for line in one.flags %}
<p class="faint">{{ line }}</p>
{% endfor %}
{% if one.passed %}
<ul>
{% for case in one.passed %}
<li class="right"><b>✓</b>{{ case | plain }}</li>
{% endfor %}
</ul>
{% endif %}
{% if one.said %}
<pre class="said"><span class="wrong">✗</span> {% for line, cause in one.said -%}
{% if cause %}<strong>{{ line }}</strong>{% else %}{{ line }}{% endif %}{{ "\n" if not loop.last }}
{%- endfor %}</pre>
{% endif %}
{% if one.waiting %}
<p class="faint">Still to pass:</p>
<ul>
{% for case in one.waiting %}
<li class="open"><b>○</b>{{ case | plain }}</li>
{% endfor %}
</ul>
{% endif %}
{% if one.code %}
<details open><summary>Your answer, with what it uses of your other cells</summary>
<pre class="code">{% for line in one.code %}<span></span>{{ line }}
{% endfor %}</pre></details>
{% endif %}
</section>
{% endfor %}
</html>
""",
)
