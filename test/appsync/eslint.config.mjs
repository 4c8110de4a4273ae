// AWS's rules for code of the APPSYNC_JS runtime; those that need types take them from tsconfig.json.
import appsync from '@aws-appsync/eslint-plugin';

export default [{ languageOptions: { parserOptions: { project: './tsconfig.json' } } }, appsync.configs.recommended];
