/** The gRPC front's end: after the gateway has answered all calls, and answers no more. */
#ifndef WEIR_GATEWAY_GRPC_FRONT_H
#define WEIR_GATEWAY_GRPC_FRONT_H

struct grpc_front;

/** NULL is accepted. */
void grpc_front_stop(struct grpc_front *front);

#endif
