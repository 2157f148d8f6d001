# clock
# A service on a machine whose clock has just fallen an hour behind.
auth() { synheart-auth "$@" --config "$MACHINE/etc/synheart-auth/synheart-auth.yaml"; }
synheart-auth apps example > app.json
auth apps add --file app.json
echo -3600 > "$MACHINE/clock"
sudo systemctl start synheart-auth
