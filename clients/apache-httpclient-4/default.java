// snippet
import org.apache.http.client.methods.CloseableHttpResponse;
import org.apache.http.impl.client.CloseableHttpClient;
import org.apache.http.impl.client.HttpClients;
import org.apache.http.util.EntityUtils;
// end

import java.util.List;
import org.apache.http.client.methods.HttpUriRequest;
import org.apache.http.client.methods.RequestBuilder;
import org.apache.http.entity.StringEntity;

final class Program implements Driver.Client {
    // snippet
    static final CloseableHttpClient CLIENT = HttpClients.createDefault(); // one for the whole program
    // per request: try (CloseableHttpResponse response = CLIENT.execute(request)) {
    //     EntityUtils.consume(response.getEntity());
    // }
    // end

    @Override
    public int request(String method, String url, String body) throws Exception {
        RequestBuilder builder = RequestBuilder.create(method).setUri(url);
        if (body != null) {
            builder.setEntity(new StringEntity(body));
        }
        HttpUriRequest request = builder.build();
        try (CloseableHttpResponse response = CLIENT.execute(request)) {
            EntityUtils.consume(response.getEntity());
            return response.getStatusLine().getStatusCode();
        }
    }

    @Override
    public List<String> jars() {
        return List.of("httpclient");
    }
}
