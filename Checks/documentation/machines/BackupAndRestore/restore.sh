# A machine on which nothing is left but the backup and the service key.
synheart-auth apps example > app.json
synheart-auth apps add --file app.json --config /etc/synheart-auth/synheart-auth.yaml
synheart-auth backup --config /etc/synheart-auth/synheart-auth.yaml /backup/2026-11-26
cp /var/lib/synheart-auth/synheart-auth.sqlite.key service-key
rm -r /var/lib/synheart-auth/*
cp service-key /var/lib/synheart-auth/synheart-auth.sqlite.key
