# A new machine with the package, the backups, and the USB stick with the service key. The package has created an empty database.
auth() { synheart-auth "$@" --config "$MACHINE/etc/synheart-auth/synheart-auth.yaml"; }
synheart-auth apps example > app.json
auth apps add --file app.json
sudo systemctl start synheart-auth
synheart-auth device register --url http://127.0.0.1:8080
auth backup /var/backups/2026-11-26
cp /var/lib/synheart-auth/synheart-auth.sqlite.key /media/usb/
sudo systemctl stop synheart-auth
rm -r /var/lib/synheart-auth/*
sudo systemctl start synheart-auth
