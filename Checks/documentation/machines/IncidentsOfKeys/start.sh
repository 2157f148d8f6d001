# A service with a phone, a backend and an operator, and a signed head of the audit log (its end at that time) from yesterday.
auth() { synheart-auth "$@" --config "$MACHINE/etc/synheart-auth/synheart-auth.yaml"; }
synheart-auth apps example > app.json
auth apps add --file app.json
sudo systemctl start synheart-auth
synheart-auth device register --url http://127.0.0.1:8080
auth credentials create --name steps-backend --role service --app com.example.app > /dev/null
auth credentials create --name alice --role admin > alice
HEAD=$(auth audit head)
SYNHEART_AUTH_CREDENTIAL=$(sed -n 's/^credential *//p' alice) synheart-auth signing-keys rotate --url http://127.0.0.1:9464
synheart-auth apps example --authority other.pem | jq '.android.play_integrity.keys[0]' > play-keys.json
