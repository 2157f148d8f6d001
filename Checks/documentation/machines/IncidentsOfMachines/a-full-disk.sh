# disk: 96m
# A service on a disk that something else fills.
auth() { synheart-auth "$@" --config "$MACHINE/etc/synheart-auth/synheart-auth.yaml"; }
synheart-auth apps example > app.json
auth apps add --file app.json
sudo systemctl start synheart-auth
synheart-auth device register --url http://127.0.0.1:8080
fallocate -l "$(($(stat -f -c '%a*%S' /var/lib/synheart-auth) - 8 * 1024 * 1024))" /var/lib/synheart-auth/core.4711
sleep 1.1
