// Package awsapi is what functions that run as separate processes find in place of AWS: the operations that the platform's AWS adapters ask for, on one
// loopback listener, over AWS's own wire formats, so that the real SDK clients are in the path.
//
// Every request must be signed (Signature Version 4) with the one key that the functions are given; what is not is refused before it is read further. What
// stands behind the operations is handed in: this package knows the wire, not the technology.
//
// Served: KMS (Sign, GetPublicKey), Parameter Store (GetParameter, PutParameter, DeleteParameter, of encrypted ones below a prefix a category), AppSync's publish mutations with IAM authorization, AgentCore's code interpreter (sessions, executeCode of JavaScript), SES (SendEmail of raw messages), SNS's mobile push (endpoints and Publish to them),
// Step Functions (state machines and executions below a prefix) and EventBridge Scheduler (the schedules of one group), and whatever Config hands in for Lambda's Invoke and Cognito's
// operations for administrators. S3 and Bedrock have servers of their own.
package awsapi
