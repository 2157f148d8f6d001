# clock
# A service whose machine is an hour behind since a moment ago.
auth() { synheart-auth "$@" --config "$MACHINE/etc/synheart-auth/synheart-auth.yaml"; }
synheart-auth apps example > app.json
auth apps add --file app.json
echo -3600 > "$MACHINE/clock"
sudo systemctl start synheart-auth
