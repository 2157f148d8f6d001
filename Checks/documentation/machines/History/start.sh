# service
# The service writes the counts of a minute when the minute ends, or when it stops.
sudo systemctl restart synheart-auth
