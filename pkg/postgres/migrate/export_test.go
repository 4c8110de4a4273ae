package migrate

// LetIn is for tests.
var LetIn = letIn
