# Two stages: the first installs from the lock, the second holds only what runs.
FROM python:3.13-slim AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /src
RUN python -m venv /opt/watchkeeper
COPY requirements.lock ./
RUN /opt/watchkeeper/bin/pip install --require-hashes -r requirements.lock
COPY pyproject.toml LICENSE ./
COPY core ./core
COPY storage ./storage
COPY bot ./bot
RUN /opt/watchkeeper/bin/pip install --no-deps --no-build-isolation .

FROM python:3.13-slim
# git reads deploy histories (`[tools.deploys]`). tini is PID 1: the kernel drops signals for which PID 1 has no
# handler, so that a SIGTERM while Python still loads would be lost; and orphans of tool servers need somebody
# who waits for them.
RUN apt-get update \
 && apt-get install -y --no-install-recommends git tini \
 && rm -rf /var/lib/apt/lists/*
RUN groupadd --gid 10001 watchkeeper \
 && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /data --shell /usr/sbin/nologin watchkeeper \
 && install -d -o 10001 -g 10001 /data
COPY --from=build /opt/watchkeeper /opt/watchkeeper
# Only /tmp is written, and /data while the database is the SQLite file there: the root file system may be
# read-only. /data is the working directory, so that a watchkeeper.toml there is found. It is no VOLUME: that
# would give each of several processes a database of its own, unnoticed, where DATABASE_URL was forgotten.
ENV PATH=/opt/watchkeeper/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    HOME=/tmp \
    MPLCONFIGDIR=/tmp/matplotlib \
    WATCHKEEPER_HOST=0.0.0.0 \
    WATCHKEEPER_PORT=8080 \
    DATABASE_URL=sqlite:////data/watchkeeper.db
WORKDIR /data
USER 10001:10001
EXPOSE 8080
STOPSIGNAL SIGTERM
# No proxy: the question goes to this container whatever its environment says.
HEALTHCHECK --interval=15s --timeout=5s --start-period=30s --retries=3 CMD ["python", "-c", \
  "import os, urllib.request as u; u.build_opener(u.ProxyHandler({})).open('http://127.0.0.1:' + os.environ.get('WATCHKEEPER_PORT', '8080') + '/healthz', timeout=4)"]
ENTRYPOINT ["tini", "--", "watchkeeper"]
CMD ["serve"]
