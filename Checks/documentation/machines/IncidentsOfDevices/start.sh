# A service with an app and two phones. DEVICE is the id of one phone, as a support ticket states it. apple.pem is a
# root that Apple announced.
auth() { synheart-auth "$@" --config "$MACHINE/etc/synheart-auth/synheart-auth.yaml"; }
synheart-auth apps example > app.json
auth apps add --file app.json
echo "providers: {apple_roots: $MACHINE/etc/synheart-auth/apple-roots.pem}" >> "$MACHINE/etc/synheart-auth/synheart-auth.yaml"
root() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 3650 -subj "/CN=$2" -keyout key.pem -out "$1" \
        -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign 2> openssl.log
}
root "$MACHINE/etc/synheart-auth/apple-roots.pem" 'An earlier root'
sudo systemctl start synheart-auth
root apple.pem 'Apple App Attestation Root CA - G2'
synheart-auth device register --url "http://127.0.0.1:$SYNHEART_AUTH_PORT"
synheart-auth device register --url "http://127.0.0.1:$SYNHEART_AUTH_PORT" --dir other
DEVICE=$(auth devices list | awk 'END { print $1 }')
