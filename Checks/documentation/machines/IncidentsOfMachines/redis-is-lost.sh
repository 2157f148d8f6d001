# A node on PostgreSQL and Redis, whose Redis has stopped and lost its data. An admin credential is in the file admin-credential.
"$CLONE/scripts/temporary-postgresql" "$MACHINE/postgresql" > /dev/null
echo "postgresql://auth@/auth?host=$MACHINE/postgresql" > /etc/credstore/synheart-auth.stores.postgresql
echo redis://127.0.0.1:6379 > /etc/credstore/synheart-auth.stores.redis
head -c 32 /dev/urandom | base64 > /etc/credstore/synheart-auth.service_key
sed -i '/^database:/d' /etc/synheart-auth/synheart-auth.yaml
sudo systemctl start redis-server
sudo systemctl start synheart-auth
(
    export SYNHEART_AUTH_STORES_POSTGRESQL_FILE=/etc/credstore/synheart-auth.stores.postgresql
    export SYNHEART_AUTH_STORES_REDIS_FILE=/etc/credstore/synheart-auth.stores.redis
    export SYNHEART_AUTH_SERVICE_KEY_FILE=/etc/credstore/synheart-auth.service_key
    synheart-auth credentials create --role admin | sed -n 's/^credential *//p' > admin-credential
)
synheart-auth apps example > app.json
synheart-auth apps add --file app.json --url http://127.0.0.1:9464 --credential-file admin-credential
sudo systemctl stop redis-server
rm -r /var/lib/redis/*
sleep 1.1
