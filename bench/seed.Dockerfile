# What `./inv bench` measures strata against: the recipe that most projects begin with.
# One file makes the environment and then gives it to the user.  Its parent, packages and
# wheels are strata's own; docs/bench.md says how it is run.
FROM parent

RUN apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
    ca-certificates \
    curl \
    git \
    less \
    libnss-cache \
    locales \
    nano \
    netbase \
    openssh-client \
    procps \
    rsync \
    tini \
    tzdata \
    && localedef --inputfile en_US --charmap UTF-8 en_US.UTF-8 \
    && rm -rf /var/lib/apt/lists/*

RUN useradd --create-home --shell /bin/bash --uid 1000 dev

# The base's Python has no ensurepip: pip runs from its wheel, and installs itself.
COPY requirements.txt /tmp/requirements.txt
RUN --mount=type=bind,from=wheels,target=/mnt/wheels \
    python3 -m venv --without-pip /opt/env \
    && PYTHONPATH=$(echo /mnt/wheels/*/pip-*.whl) /opt/env/bin/python -m pip install --no-index \
    --find-links /mnt/wheels/pytorch --find-links /mnt/wheels/jupyter \
    --requirement /tmp/requirements.txt
RUN chown -R dev:dev /opt/env

ENV LANG=C.UTF-8 PATH=/opt/env/bin:$PATH
USER 1000
WORKDIR /home/dev
ENTRYPOINT ["/usr/bin/tini", "--"]
CMD ["jupyter", "lab", "--ip=0.0.0.0"]
