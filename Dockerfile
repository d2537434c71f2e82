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
# git reads deploy histories (`[tools.deploys]`).
RUN apt-get update \
 && apt-get install -y --no-install-recommends git \
 && rm -rf /var/lib/apt/lists/*
RUN groupadd --gid 10001 watchkeeper \
 && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /data --shell /usr/sbin/nologin watchkeeper \
 && install -d -o 10001 -g 10001 /data
COPY --from=build /opt/watchkeeper /opt/watchkeeper
# Nothing outside /data is written, so the root file system may be read-only. /data is also the working
# directory: a watchkeeper.toml there is found, and temporary files go there when /tmp cannot be written.
ENV PATH=/opt/watchkeeper/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    HOME=/data \
    MPLCONFIGDIR=/data/.cache/matplotlib \
    WATCHKEEPER_HOST=0.0.0.0 \
    WATCHKEEPER_PORT=8080 \
    DATABASE_URL=sqlite:////data/watchkeeper.db
WORKDIR /data
VOLUME /data
USER 10001:10001
EXPOSE 8080
STOPSIGNAL SIGTERM
# No proxy: the question goes to this container whatever its environment says.
HEALTHCHECK --interval=15s --timeout=5s --start-period=30s --retries=3 CMD ["python", "-c", \
  "import os, urllib.request as u; u.build_opener(u.ProxyHandler({})).open('http://127.0.0.1:' + os.environ.get('WATCHKEEPER_PORT', '8080') + '/healthz', timeout=4)"]
# Give `docker run --init` (or a pod with a shared process namespace) if tool servers leave children behind.
ENTRYPOINT ["watchkeeper"]
CMD ["serve"]
