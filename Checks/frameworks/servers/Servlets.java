import java.io.IOException;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import javax.servlet.http.HttpServlet;
import javax.servlet.http.HttpServletRequest;
import javax.servlet.http.HttpServletResponse;

/** Two servlet containers, Jetty and Tomcat, that serve `/v1/pay` and every path below it. Prints their ports. */
public class Servlets {
    public static class Pay extends HttpServlet {
        @Override
        protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
            response.getWriter().write("pay");
        }
    }

    public static void main(String[] arguments) throws Exception {
        java.util.logging.LogManager.getLogManager().reset();
        System.setProperty("org.eclipse.jetty.LEVEL", "OFF");

        var jetty = new org.eclipse.jetty.server.Server(new java.net.InetSocketAddress("127.0.0.1", 0));
        var context = new org.eclipse.jetty.servlet.ServletContextHandler();
        context.addServlet(Pay.class, "/v1/pay");
        context.addServlet(Pay.class, "/v1/pay/*");
        jetty.setHandler(context);
        jetty.start();
        System.out.println(((org.eclipse.jetty.server.ServerConnector) jetty.getConnectors()[0]).getLocalPort() + " jetty");

        var tomcat = new org.apache.catalina.startup.Tomcat();
        tomcat.setBaseDir(Files.createTempDirectory("tomcat").toString());
        tomcat.setPort(0);
        // Accepts these characters unescaped in paths, as a lenient operator might.
        tomcat.getConnector().setProperty("relaxedPathChars", "\"<>[\\]^`{|}");
        tomcat.getConnector().setProperty("address", "127.0.0.1");
        var web = tomcat.addContext("", null);
        org.apache.catalina.startup.Tomcat.addServlet(web, "pay", new Pay());
        web.addServletMappingDecoded("/v1/pay", "pay");
        web.addServletMappingDecoded("/v1/pay/*", "pay");
        tomcat.start();
        System.out.println(tomcat.getConnector().getLocalPort() + " tomcat");
        while (System.in.read() != -1) {}
        System.exit(0);
    }
}
