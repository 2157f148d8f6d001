# A service with one secret of each kind: TLS, Apple's key, Google's service account, a credential, a webhook.
auth() { synheart-auth "$@" --config "$MACHINE/etc/synheart-auth/synheart-auth.yaml"; }
etc=$MACHINE/etc/synheart-auth
certificate() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days "$1" -subj /CN=auth.example.com \
        -keyout "$2/privkey.pem" -out "$2/fullchain.pem" 2> openssl.log
}
mkdir "$etc/tls" new
certificate 30 "$etc/tls"
certificate 90 new
for file in "$MACHINE/etc/credstore/synheart-auth.providers.apple_key" AuthKey_NEWKEY1234.p8; do
    openssl ecparam -name prime256v1 -genkey -noout | openssl pkcs8 -topk8 -nocrypt > "$file"
done
openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 2> openssl.log | jq -Rs '{type: "service_account", private_key_id: "new",
    client_email: "auth@example.iam.gserviceaccount.com", private_key: ., token_uri: "https://oauth2.googleapis.com/token"}' > account.json
sed -i "s|#tls_certificate: .*|tls_certificate: $etc/tls/fullchain.pem|; s|#tls_key: .*|tls_key: $etc/tls/privkey.pem|" "$etc/synheart-auth.yaml"
printf 'providers:\n  apple_team_id: TEAMID1234\n  apple_key_id: OLDKEY1234\n' >> "$etc/synheart-auth.yaml"
synheart-auth apps example > app.json
auth apps add --file app.json
sudo systemctl start synheart-auth
auth credentials create --name steps-backend --role service --app com.example.app --days 10 > /dev/null
auth webhooks add https://hooks.example.com/synheart > /dev/null
