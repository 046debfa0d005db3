"""The web dashboard: server-rendered pages about a cluster, RewindMQ's or RocketMQ's.

How a page registers itself: a module of ``dashboard/pages/`` that defines ``PAGES``, a tuple of ``Page``. Its
template stands in ``dashboard/templates/`` and extends ``base.html``. Nothing else names the page::

    async def show(visit: Visit) -> Response:
        return visit.render("reset.html", group=visit.path("group"))

    PAGES = (Page("/groups/{group}/reset", show, "Reset"),)

A ``Page`` with ``navigation`` has an entry in the navigation of every page. ``methods=("POST",)`` makes a
page that changes something: before its handler runs, the CSRF token, the origin and the read-only mode are
checked, and ``visit.form`` holds the fields. Its form needs ``{{ csrf_field() }}``.
"""
