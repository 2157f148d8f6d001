# A stopped service over a SQLite file, and an empty PostgreSQL.
synheart-auth apps example > app.json
synheart-auth apps add --file app.json --database /var/lib/synheart-auth/db.sqlite
"$CLONE/scripts/temporary-postgresql" "$MACHINE/postgresql" > /dev/null
export SYNHEART_AUTH_STORES_POSTGRESQL="postgresql://auth@/auth?host=$MACHINE/postgresql"
SYNHEART_AUTH_SERVICE_KEY=$(cat /var/lib/synheart-auth/db.sqlite.key)
export SYNHEART_AUTH_SERVICE_KEY
