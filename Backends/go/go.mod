module github.com/synheart-ai/synheart-auth/Backends/go

go 1.19
