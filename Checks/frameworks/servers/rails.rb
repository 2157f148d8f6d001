# The router of Rails, on WEBrick: `/v1/pay(.:format)` and `/v1/pay/:id(.:format)`. Prints the port.
require "logger"
require "action_controller"
require "action_dispatch"
require "webrick"
require "rack/handler/webrick"

class PayController < ActionController::Base
  def show
    render plain: "pay"
  end
end

routes = ActionDispatch::Routing::RouteSet.new
routes.draw do
  get "/v1/pay", to: "pay#show"
  get "/v1/pay/:id", to: "pay#show"
end
server = WEBrick::HTTPServer.new(
  BindAddress: "127.0.0.1", Port: 0, Logger: WEBrick::Log.new(File::NULL), AccessLog: [])
server.mount "/", Rack::Handler::WEBrick, routes
puts "#{server.listeners.first.addr[1]} rails"
$stdout.flush
Thread.new do
  $stdin.read
  server.shutdown
end
server.start
