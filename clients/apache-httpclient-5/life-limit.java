// snippet
import org.apache.hc.core5.util.TimeValue;
import org.apache.hc.client5.http.impl.classic.CloseableHttpClient;
import org.apache.hc.client5.http.config.ConnectionConfig;
import org.apache.hc.client5.http.impl.classic.HttpClients;
import org.apache.hc.client5.http.impl.io.PoolingHttpClientConnectionManagerBuilder;
// end

import java.util.List;
import org.apache.hc.core5.http.io.entity.EntityUtils;
import org.apache.hc.core5.http.io.entity.StringEntity;
import org.apache.hc.core5.http.io.support.ClassicRequestBuilder;

final class Program implements Driver.Client {
    static final long lifeMs = Driver.lifeMs();

    // snippet
    static final CloseableHttpClient CLIENT = HttpClients.custom()
        .setConnectionManager(PoolingHttpClientConnectionManagerBuilder.create()
            .setDefaultConnectionConfig(ConnectionConfig.custom().setTimeToLive(TimeValue.ofMilliseconds(lifeMs)).build())
            .build())
        .build();
    // end

    @Override
    public int request(String method, String url, String body) throws Exception {
        ClassicRequestBuilder builder = ClassicRequestBuilder.create(method).setUri(url);
        if (body != null) {
            builder.setEntity(new StringEntity(body));
        }
        return CLIENT.execute(builder.build(), response -> {
            EntityUtils.consume(response.getEntity());
            return response.getCode();
        });
    }

    @Override
    public List<String> jars() {
        return List.of("httpclient5");
    }
}
