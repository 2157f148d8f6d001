# service
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=auth.example.com -keyout key.pem \
    -out /etc/synheart-auth/tls.pem 2> openssl.log
