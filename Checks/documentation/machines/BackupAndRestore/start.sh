# service
cp /var/lib/synheart-auth/synheart-auth.sqlite.key service-key
