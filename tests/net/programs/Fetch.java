import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.net.http.WebSocket;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;

/** Fetch URL...: what is there; of a ws: or wss: one, what comes back of a long message. */
public class Fetch {
	static class Echo implements WebSocket.Listener {
		final StringBuilder got = new StringBuilder();
		final CompletableFuture<String> whole = new CompletableFuture<>();

		@Override
		public CompletionStage<?> onText(WebSocket socket, CharSequence part, boolean last) {
			got.append(part);
			if (last)
				whole.complete(got.toString());
			socket.request(1);
			return null;
		}
	}

	public static void main(String[] urls) throws Exception {
		HttpClient client = HttpClient.newHttpClient();
		for (String url : urls) {
			URI uri = URI.create(url);
			if (!url.startsWith("ws")) {
				System.out.print(client.send(HttpRequest.newBuilder(uri).build(),
					BodyHandlers.ofString()).body());
				continue;
			}
			Echo echo = new Echo();
			WebSocket socket = client.newWebSocketBuilder().buildAsync(uri, echo).join();
			String message = "0123456789".repeat(30000);
			socket.sendText(message.substring(0, 100000), false).join();
			socket.sendText(message.substring(100000), true).join();
			if (!echo.whole.get(20, TimeUnit.SECONDS).equals(message))
				throw new Exception("something else came back");
			socket.sendClose(WebSocket.NORMAL_CLOSURE, "").join();
			System.out.println("echoed " + message.length());
		}
	}
}
