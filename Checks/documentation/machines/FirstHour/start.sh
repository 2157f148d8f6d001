# A machine on which the package was installed just now: the service runs, over an empty database.
sudo systemctl start synheart-auth
