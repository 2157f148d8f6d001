# service
DEVICE_ID=$(synheart-auth devices list | awk 'END { print $1 }')
synheart-auth signing-keys rotate
KID=$(synheart-auth signing-keys list --json | jq -r '.[0].kid')
