# Stores in PostgreSQL, which keeps the claims, and a Redis that was just added to the configuration.
"$CLONE/scripts/temporary-postgresql" "$MACHINE/postgresql" > /dev/null
export SYNHEART_AUTH_STORES_POSTGRESQL="postgresql://auth@/auth?host=$MACHINE/postgresql"
SYNHEART_AUTH_SERVICE_KEY=$(head -c 32 /dev/urandom | base64)
export SYNHEART_AUTH_SERVICE_KEY
sed -i '/^database:/d' /etc/synheart-auth/synheart-auth.yaml
synheart-auth apps example > app.json
synheart-auth apps add --file app.json
sudo systemctl start synheart-auth
sudo systemctl start redis-server
export SYNHEART_AUTH_STORES_REDIS=redis://127.0.0.1:6379
