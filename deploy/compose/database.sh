#!/bin/sh
# PostgreSQL as a primary whose commits wait for one standby, or as that standby: database.sh primary | standby <host of the primary>
# Works in any image that has PostgreSQL's programs, with the password of its roles in PASSWORD.
set -eu
role=$1
PATH=$PATH:$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -1)
export PGDATA=/var/lib/postgresql/intray

new_primary() {
  initdb --pgdata "$PGDATA.new" --encoding UTF8 --auth-local=trust --auth-host=scram-sha-256 >&2
  cat >>"$PGDATA.new/pg_hba.conf" <<'EOF'
host all,replication all all scram-sha-256
EOF
  pg_ctl --pgdata "$PGDATA.new" --wait --options "-c listen_addresses='' -c unix_socket_directories=/tmp" start >&2
  psql --host /tmp --dbname postgres --set ON_ERROR_STOP=1 --set password="$PASSWORD" <<'EOF' >&2
CREATE ROLE intray LOGIN PASSWORD :'password';
CREATE DATABASE intray OWNER intray TEMPLATE template0;
CREATE ROLE standby REPLICATION LOGIN PASSWORD :'password';
EOF
  pg_ctl --pgdata "$PGDATA.new" --wait stop >&2
  cat >>"$PGDATA.new/postgresql.conf" <<'EOF'
listen_addresses = '*'
unix_socket_directories = '/tmp'
# A commit is confirmed when both have it on disk.
synchronous_standby_names = 'standby'
# What a standby that is away may still fetch.
max_slot_wal_keep_size = 4GB
EOF
}

new_standby() {
  source="host=$1 user=standby application_name=standby"
  export PGPASSWORD="$PASSWORD"
  # The slot of an attempt that was cut off would be in the way.
  until psql --dbname "$source dbname=postgres" --command \
    "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = 'standby' AND NOT active" >&2; do
    sleep 1
  done
  rm -rf "$PGDATA.new"
  pg_basebackup --pgdata "$PGDATA.new" --dbname "$source" --write-recovery-conf --create-slot --slot standby --checkpoint fast >&2
  # When this one is promoted, nobody follows it yet.
  echo "synchronous_standby_names = ''" >>"$PGDATA.new/postgresql.conf"
}

if [ ! -e "$PGDATA" ]; then
  rm -rf "$PGDATA.new"
  "new_$role" "${2-}"
  mv "$PGDATA.new" "$PGDATA"
fi
exec postgres
