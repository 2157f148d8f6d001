# A service whose app is in mode observe, after a day: 20 phones, a backend that asks about their requests, and two requests of an
# old version of the app that does not sign.
auth() { synheart-auth "$@" --config "$MACHINE/etc/synheart-auth/synheart-auth.yaml"; }
synheart-auth apps example | jq '.mode = "observe"' > app.json
auth apps add --file app.json
sudo systemctl start synheart-auth
auth credentials create --role service --app com.example.app | sed -n 's/^credential *//p' > credential
public=http://127.0.0.1:$SYNHEART_AUTH_PORT
synheart-auth simulate --url $public --devices 20 --requests 400 --rotate-percent 0 --operation verify --credential-file credential
for _ in 1 2; do
    curl -sf -H "Authorization: Bearer $(cat credential)" $public/auth/v1/verify --json '{"method": "GET", "scheme": "https",
        "authority": "api.example.com", "path": "/steps", "query": null, "headers": [], "body": ""}'
done
# Counts are written when their minute is over, or the service stops.
sudo systemctl restart synheart-auth
