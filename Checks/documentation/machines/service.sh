# A running service with an app, four phones (one of them on Android) and an admin credential. Shell variables hold
# the service's operations URL, the credential, and the path of the credential's file.
synheart-auth apps example > app.json
synheart-auth apps add --file app.json --config /etc/synheart-auth/synheart-auth.yaml
sudo systemctl start synheart-auth
synheart-auth credentials create --role admin --config /etc/synheart-auth/synheart-auth.yaml | sed -n 's/^credential *//p' > ~/.synheart-credential
for phone in 1 2 3 4; do
    platform=ios
    [ $phone -lt 4 ] || platform=android
    synheart-auth device register --url http://127.0.0.1:8080 --dir phone$phone --platform $platform
done
export SYNHEART_AUTH_URL=http://127.0.0.1:9464 SYNHEART_AUTH_CREDENTIAL_FILE=~/.synheart-credential
CREDENTIAL=$(cat ~/.synheart-credential)
