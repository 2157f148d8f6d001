# service
# Counts are written when their minute is over, or the service stops.
sudo systemctl restart synheart-auth
