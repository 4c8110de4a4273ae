// Loaded before the server: it then listens on a free port of this machine only and says which, and ends when its input ends, with the test that started it.
import http from "node:http";

const listen = http.Server.prototype.listen;
http.Server.prototype.listen = function (_port, listening) {
  return listen.call(this, 0, "127.0.0.1", () => {
    console.log(`listening on ${this.address().port}`);
    listening?.();
  });
};
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
